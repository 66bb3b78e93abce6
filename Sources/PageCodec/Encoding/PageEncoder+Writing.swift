import StoreInterface
import StoreModel

extension PageEncoder {
    /// Returns the bytes of the new page; empty if no object is left.
    mutating func encode() throws(PageError) -> [UInt8] {
        guard presence != 0 else { return [] }
        if let old, old.translation != nil { try gatherTranslated(old) }
        let capacity = (PageAddress.slots - presence.leadingZeroBitCount + 7) & ~7
        let bound = try upperBound(capacity)
        var failure: PageError?
        let bytes = [UInt8](unsafeUninitializedCapacity: bound) { buffer, count in
            // The bound is at least the size of a header, so there is a base address.
            let page = UnsafeMutableRawPointer(buffer.baseAddress.unsafelyUnwrapped)
            do throws(PageError) {
                count = try write(page, capacity)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Returns an upper bound of the page's size: every column at full width, all heaps, padding, and the room that short
    /// copies overwrite.
    private func upperBound(_ capacity: Int) throws(PageError) -> Int {
        var bound = PageFormat.headerSize + 8 * capacity + heapCount + (old?.byteCount ?? 0) + Self.shortCount
        for column in layout.columns {
            let array = column.arraySize(width: column.code.naturalWidth, capacity: capacity)
            bound += PageFormat.entrySize + 16 + array + 8
        }
        guard bound <= PageFormat.maximumByteCount else {
            throw PageError(value: layout.entity.name, reason: "64 neighbouring objects exceed 4 GB; store such data elsewhere")
        }
        return bound
    }

    private func write(_ page: UnsafeMutableRawPointer, _ capacity: Int) throws(PageError) -> Int {
        var position = PageFormat.headerSize + layout.columns.count * PageFormat.entrySize
        let (base, width) = generationRange(capacity)
        for column in layout.columns.indices {
            let entry = PageFormat.headerSize + column * PageFormat.entrySize
            page.put(UInt32(position), at: entry)
            let end = try writeColumn(column, to: page, entry: entry, start: position, capacity: capacity)
            position = PageFormat.aligned(end)
            for i in end..<position { page.storeBytes(of: 0, toByteOffset: i, as: UInt8.self) }
        }
        page.putArray(generations, count: capacity, width: width, at: position)
        let count = position + capacity * width
        writeHeader(page, count: count, capacity: capacity, base: base, generations: position, width: width)
        return count
    }

    private func writeHeader(
        _ page: UnsafeMutableRawPointer, count: Int, capacity: Int, base: Generation, generations: Int, width: Int
    ) {
        page.put(PageFormat.magic, at: PageFormat.magicOffset)
        page.put(layout.formatVersion, at: PageFormat.versionOffset)
        page.put(UInt16(0), at: PageFormat.flagsOffset)
        page.put(UInt32(count), at: PageFormat.byteCountOffset)
        page.put(layout.schemaNumber, at: PageFormat.schemaNumberOffset)
        page.put(presence, at: PageFormat.presenceOffset)
        page.put(base.rawValue, at: PageFormat.baseGenerationOffset)
        page.put(UInt32(generations), at: PageFormat.generationsOffset)
        page.put(UInt8(width), at: PageFormat.generationWidthOffset)
        page.put(UInt8(capacity), at: PageFormat.capacityOffset)
        page.put(UInt16(layout.columns.count), at: PageFormat.columnCountOffset)
        let bytes = UnsafeRawBufferPointer(start: page, count: count)
        page.put(PageHash.page(bytes, layout.place(number)), at: PageFormat.checksumOffset)
    }

    /// Converts the gathered generations to distances from the least generation of the present slots. Absent slots get 0.
    private func generationRange(_ capacity: Int) -> (base: Generation, width: Int) {
        let some = generations[presence.trailingZeroBitCount]
        if ~presence != 0 {
            for slot in SlotIterator(~presence) where slot < capacity { generations[slot] = some }
        }
        var least = some
        var most = some
        for slot in 0..<capacity {
            least = min(least, generations[slot])
            most = max(most, generations[slot])
        }
        if least == most { return (Generation(rawValue: least), 0) }
        for slot in 0..<capacity { generations[slot] &-= least }
        for slot in SlotIterator(~presence) where slot < capacity { generations[slot] = 0 }
        return (Generation(rawValue: least), narrowWidth(most - least))
    }

    /// Writes a section and the rest of its directory entry. Returns the end of the section.
    private func writeColumn(
        _ index: Int, to page: UnsafeMutableRawPointer, entry: Int, start: Int, capacity: Int
    ) throws(PageError) -> Int {
        let column = layout.columns[index]
        let fresh = complete | states[3 * index]
        let kept = presence & ~fresh
        var nulls = states[3 * index + 1]
        var outside = states[3 * index + 2]
        var source: ObjectPage.Section?
        if let old, kept != 0 {
            // Cells that cannot be copied have been gathered, so they are not among the kept cells.
            if let place = old.copyableColumn(ColumnIndex(rawValue: index), as: column.code) {
                if fresh & presence == 0, presence == old.presence, capacity == old.capacity,
                    !column.isOptional || old.hasNullWord(place)
                {
                    return copyColumn(place, from: old, to: page, entry: entry, start: start)
                }
                let section = old.section(place)
                nulls |= section.nulls & kept
                outside |= section.outside & kept
                source = section
            }
        }
        var position = start
        var flags: UInt8 = 0
        if column.isOptional || nulls != 0 {
            page.put(nulls, at: position)
            position += 8
            flags = PageFormat.nullWordFlag
        }
        if outside != 0 {
            page.put(outside, at: position)
            position += 8
            flags |= PageFormat.outsideWordFlag
        }
        let width: Int
        switch column.shape {
        case .bits:
            var bits = cells[column.cells]
            if let old, let source { bits |= old.base.number(UInt64.self, at: source.array) & kept }
            page.put(bits & ~nulls, at: position)
            width = 8
            position += 8
        case .signed, .unsigned, .real:
            width = writeNumbers(column, from: source, keeping: kept & ~nulls, to: page, at: position, capacity: capacity)
            position += width * capacity
        case .uuid:
            width = writeUUIDs(column, from: source, keeping: kept & ~nulls, to: page, at: position, capacity: capacity)
            position += width * capacity
        case .heap:
            (width, position) = try writeHeap(
                column, from: source, keeping: kept & ~nulls, to: page, at: position, capacity: capacity)
        }
        page.put(column.code.rawValue, at: entry + PageFormat.entryTypeOffset)
        page.put(UInt8(width), at: entry + PageFormat.entryWidthOffset)
        page.put(flags, at: entry + PageFormat.entryFlagsOffset)
        page.put(UInt8(0), at: entry + PageFormat.entryReservedOffset)
        return position
    }

    /// Copies the section of a column without changes.
    private func copyColumn(
        _ index: ColumnIndex, from old: ObjectPage, to page: UnsafeMutableRawPointer, entry: Int, start: Int
    ) -> Int {
        let oldEntry = PageFormat.headerSize + index.rawValue * PageFormat.entrySize
        let oldStart = Int(old.base.number(UInt32.self, at: oldEntry))
        let count = old.section(index).end - oldStart
        (page + start).copyMemory(from: old.base + oldStart, byteCount: count)
        (page + entry + 4).copyMemory(from: old.base + oldEntry + 4, byteCount: 4)
        return start + count
    }

    private func writeNumbers(
        _ column: PageLayout.Column, from source: ObjectPage.Section?, keeping kept: UInt64, to page: UnsafeMutableRawPointer,
        at position: Int, capacity: Int
    ) -> Int {
        let cells = cells + column.cells
        if let old, let source, source.width != 0 {
            if column.shape == .signed {
                for slot in SlotIterator(kept) {
                    let number = old.base.signed(width: source.width, at: source.array + slot * source.width)
                    cells[slot] = UInt64(bitPattern: number)
                }
            } else {
                for slot in SlotIterator(kept) {
                    cells[slot] = old.base.unsigned(width: source.width, at: source.array + slot * source.width)
                }
            }
        }
        var bits: UInt64 = 0
        let width: Int
        switch column.shape {
        case .signed:
            // Zigzag encoding: a number fits into n signed bytes exactly if its encoding fits into n unsigned bytes.
            for slot in 0..<capacity { bits |= cells[slot] << 1 ^ UInt64(bitPattern: Int64(bitPattern: cells[slot]) >> 63) }
            width = narrowWidth(bits)
        case .unsigned:
            for slot in 0..<capacity { bits |= cells[slot] }
            width = narrowWidth(bits)
        default:
            for slot in 0..<capacity { bits |= cells[slot] }
            width = bits == 0 ? 0 : column.code.naturalWidth
        }
        page.putArray(cells, count: capacity, width: width, at: position)
        return width
    }

    private func writeUUIDs(
        _ column: PageLayout.Column, from source: ObjectPage.Section?, keeping kept: UInt64, to page: UnsafeMutableRawPointer,
        at position: Int, capacity: Int
    ) -> Int {
        let cells = cells + column.cells
        if let old, let source, source.width != 0 {
            for slot in SlotIterator(kept) {
                // Native byte order: the words are bytes here, not numbers.
                cells[slot * 2] = old.base.loadUnaligned(fromByteOffset: source.array + slot * 16, as: UInt64.self)
                cells[slot * 2 + 1] = old.base.loadUnaligned(fromByteOffset: source.array + slot * 16 + 8, as: UInt64.self)
            }
        }
        var bits: UInt64 = 0
        for i in 0..<capacity * 2 { bits |= cells[i] }
        guard bits != 0 else { return 0 }
        (page + position).copyMemory(from: cells, byteCount: capacity * 16)
        return 16
    }

    /// Writes offsets and heap. Neighbours that are adjacent in their source are copied together.
    private func writeHeap(
        _ column: PageLayout.Column, from source: ObjectPage.Section?, keeping kept: UInt64, to page: UnsafeMutableRawPointer,
        at position: Int, capacity: Int
    ) throws(PageError) -> (width: Int, end: Int) {
        let cells = cells + column.cells
        var oldHeap = UnsafeRawPointer(heap)
        if let old, let source {
            oldHeap = old.base + source.array + source.width * (old.capacity + 1)
            var end = 0
            for slot in SlotIterator(kept) {
                let span = try old.span(slot, in: source)
                // The span is in the old heap, and the old page is smaller than 4 GB.
                let offset = span.baseAddress.unsafelyUnwrapped - oldHeap
                // Spans that overlap might exceed the room for them, which is that of the old heap.
                guard offset >= end else {
                    throw PageError(offset: source.array + slot * source.width, field: "heap offsets", reason: "overlap")
                }
                end = offset + span.count
                cells[slot] = UInt64(offset) << 32 | UInt64(span.count)
            }
        }
        var total: UInt64 = 0
        for slot in 0..<capacity {
            offsets[slot] = total
            total += cells[slot] & 0xFFFF_FFFF
        }
        offsets[capacity] = total
        let width = narrowWidth(total)
        page.putArray(offsets, count: capacity + 1, width: width, at: position)
        var target = page + position + width * (capacity + 1)
        var slot = 0
        while slot < capacity {
            let isKept = kept >> UInt64(slot) & 1 != 0
            let from = Int(cells[slot] >> 32)
            var count = Int(cells[slot] & 0xFFFF_FFFF)
            slot += 1
            guard count != 0 else { continue }
            if isKept {
                while slot < capacity, kept >> UInt64(slot) & 1 != 0, Int(cells[slot] >> 32) == from + count {
                    count += Int(cells[slot] & 0xFFFF_FFFF)
                    slot += 1
                }
                target.copyMemory(from: oldHeap + from, byteCount: count)
            } else if count <= Self.shortCount {
                let pair = (heap + from).loadUnaligned(as: SIMD2<UInt64>.self)
                target.storeBytes(of: pair, as: SIMD2<UInt64>.self)
            } else {
                target.copyMemory(from: heap + from, byteCount: count)
            }
            target += count
        }
        return (width, target - page)
    }
}
