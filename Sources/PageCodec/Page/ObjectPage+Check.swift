import StoreInterface
import StoreModel

extension ObjectPage {
    /// Checks the start of a page.
    /// - Parameters:
    ///   - expected: The flags that the page must have.
    ///   - format: The format version that the page must have.
    @inline(__always)
    static func checkStart(
        _ base: UnsafeRawPointer, count: Int, flags expected: UInt16, format: UInt16
    ) throws(PageError) {
        guard base.number(UInt32.self, at: PageFormat.magicOffset) == PageFormat.magic else {
            throw PageError(offset: PageFormat.magicOffset, field: "magic", reason: "is not that of an object page")
        }
        let version = base.number(UInt16.self, at: PageFormat.versionOffset)
        guard version == format else {
            throw PageError(
                offset: PageFormat.versionOffset, field: "format version",
                reason: "\(version) is not that of the file, whose pages have \(format)")
        }
        let flags = base.number(UInt16.self, at: PageFormat.flagsOffset)
        guard flags == expected else {
            let reason = flags == PageFormat.packedFlag ? "say that the page is packed" : "\(flags) are unknown"
            throw PageError(offset: PageFormat.flagsOffset, field: "flags", reason: reason)
        }
        let written = base.number(UInt32.self, at: PageFormat.byteCountOffset)
        guard Int(written) == count else {
            throw PageError(
                offset: PageFormat.byteCountOffset, field: "byte count", reason: "is \(written), but \(count) bytes are here")
        }
    }

    /// Establishes the invariants: sections are inside the bytes, in order, and of the layout's types.
    /// - Parameter columns: The columns of the schema that wrote the page.
    func checkSections(
        _ columns: ContiguousArray<PageLayout.Column>, _ layout: PageLayout
    ) throws(PageError) {
        guard capacity > 0, capacity <= PageAddress.slots, capacity & 7 == 0 else {
            throw PageError(offset: PageFormat.capacityOffset, field: "capacity", reason: "\(capacity) is not 8, 16 ... 64")
        }
        guard presence != 0, presence.leadingZeroBitCount >= PageAddress.slots - capacity else {
            throw PageError(offset: PageFormat.presenceOffset, field: "presence", reason: "is empty or exceeds the capacity")
        }
        guard storedCount == columns.count else {
            throw PageError(
                offset: PageFormat.columnCountOffset, field: "column count",
                reason: "is \(storedCount), but \(layout.entity.name) has \(columns.count)")
        }
        guard PageFormat.headerSize + storedCount * PageFormat.entrySize <= byteCount else {
            throw PageError(offset: PageFormat.columnCountOffset, field: "directory", reason: "does not fit into the page")
        }
        var free = PageFormat.headerSize + storedCount * PageFormat.entrySize
        for column in 0..<storedCount {
            free = try checkEntry(column, column: columns[column], layout: layout, free: free)
        }
        guard generations >= free, generationWidth <= 8, ColumnCode.numberWidths >> UInt32(generationWidth) & 1 != 0,
            generations + generationWidth * capacity <= byteCount
        else {
            throw PageError(offset: PageFormat.generationsOffset, field: "generations", reason: "lie outside the page")
        }
    }

    /// Checks a directory entry.
    /// - Returns: The end of the section without its heap.
    @inline(__always)
    private func checkEntry(
        _ index: Int, column: PageLayout.Column, layout: PageLayout, free: Int
    ) throws(PageError) -> Int {
        let word = base.number(UInt64.self, at: PageFormat.headerSize + index * PageFormat.entrySize)
        let entry = DirectoryEntry(word)
        let words = Int(truncatingIfNeeded: word >> 48 & 1 &+ word >> 49 & 1)
        // Nothing overflows: the start has 32 bits, the width 8, and the capacity is at most 64.
        let end = entry.start &+ 8 &* words &+ column.arraySize(width: entry.width, capacity: capacity)
        let fits = entry.start >= free && end <= byteCount
        guard word & column.fixedMask == column.fixedBits, column.allowsWidth(entry.width), fits else {
            throw fault(index, entry: entry, column: column, layout: layout, fits: fits)
        }
        return end
    }

    /// Returns the fault of a directory entry.
    private func fault(
        _ index: Int, entry: DirectoryEntry, column: PageLayout.Column, layout: PageLayout, fits: Bool
    ) -> PageError {
        let place = PageFormat.headerSize + index * PageFormat.entrySize
        let code = column.code
        let reason =
            if entry.type != code.rawValue {
                "has type \(entry.type) in the page and \(code.rawValue) in the schema"
            } else if !column.allowsWidth(entry.width) {
                "cannot have width \(entry.width)"
            } else if fits {
                "has unknown flags \(entry.flags) or a reserved byte that is not zero"
            } else {
                "lies outside its place in the page"
            }
        return PageError(offset: place, field: layout.name(ColumnIndex(rawValue: index)), reason: reason)
    }

    func checkChecksum(_ place: PageLocation?) throws(PageError) {
        guard PageHash.page(bytes, place) == base.number(UInt64.self, at: PageFormat.checksumOffset) else {
            throw PageError(
                offset: PageFormat.checksumOffset, field: "checksum", reason: "does not fit the page's bytes and place")
        }
    }

    /// Checks every offset and every string. Also checks that no generation overflows, and that absent slots are not null and
    /// have no bytes.
    func checkContents() throws(PageError) {
        for column in storedColumns {
            let section = section(column)
            guard section.nulls & ~presence == 0 else {
                throw PageError(offset: section.array - 8, field: "null word", reason: "names slots that hold no object")
            }
            if section.code.shape == .heap { try checkHeap(section) }
            guard section.outside & ~(presence & ~section.nulls) == 0 else {
                throw PageError(offset: section.array - 8, field: "out-of-line word", reason: "names slots that hold no value")
            }
        }
        for slot in SlotIterator(presence) {
            let delta = base.unsigned(width: generationWidth, at: generations + slot * generationWidth)
            guard !baseGeneration.rawValue.addingReportingOverflow(delta).overflow else {
                throw PageError(offset: generations, field: "generations", reason: "exceed 64 bits")
            }
        }
    }

    private func checkHeap(_ section: Section) throws(PageError) {
        guard base.unsigned(width: section.width, at: section.array) == 0 else {
            throw PageError(offset: section.array, field: "heap offsets", reason: "do not begin with 0")
        }
        for slot in 0..<capacity {
            let span = try span(slot, in: section)
            let isPresent = presence & ~section.nulls & 1 << UInt64(slot) != 0
            guard isPresent || span.isEmpty else {
                throw PageError(offset: section.array, field: "heap offsets", reason: "give bytes to an empty slot")
            }
            if section.outside >> UInt64(slot) & 1 != 0 {
                _ = try LargeValueRecord(span)
                continue
            }
            guard section.code == .data || span.isASCII || String(checkedUTF8: span) != nil else {
                throw PageError(offset: section.array + slot * section.width, field: "string", reason: "is not UTF-8")
            }
        }
    }
}
