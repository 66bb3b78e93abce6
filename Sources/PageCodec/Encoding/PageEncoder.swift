import StoreInterface

/// Gathers the cells of changed rows column by column, then writes a page from them and the old page.
///
/// Lives for one merge. The unsafe pointers are its own memory, one block and the heap, freed at the end.
struct PageEncoder: ~Copyable {
    var old: ObjectPage?
    let layout: PageLayout
    /// The page's.
    let number: UInt64
    /// Zero where nothing was gathered. Numbers as 64 bits; a Bool column is one word; a UUID two words a slot; of strings and
    /// data the position in ``heap`` (or, for kept ones, in the old page's heap) in the high half and the count in the low half.
    let cells: UnsafeMutablePointer<UInt64>
    /// Three words a column: the slots of partial updates that set it, those whose row sets it to null, and those that have a record of
    /// a value elsewhere.
    let states: UnsafeMutablePointer<UInt64>
    /// The generations, one a slot.
    let generations: UnsafeMutablePointer<UInt64>
    /// A column's offsets while it is written.
    let offsets: UnsafeMutablePointer<UInt64>
    /// Room for one value that belongs to somebody else.
    private let borrowed: UnsafeMutablePointer<Value>
    private(set) var heap: UnsafeMutableRawPointer
    private(set) var heapCount = 0
    private var heapCapacity: Int
    /// Strings and data of more bytes are left out and noted in ``largeValues``.
    private var limit: Int
    private(set) var largeValues: [LargeValuePlace] = []

    /// The slots of the new page that hold an object.
    var presence: UInt64
    /// Slots all of whose columns come from a row.
    private(set) var complete: UInt64 = 0

    /// Strings up to this length are copied as two words, so heaps have that much room to spare.
    static let shortCount = 16

    init(old: ObjectPage?, layout: PageLayout, number: UInt64, limit: Int) {
        self.old = old
        self.number = number
        self.limit = limit
        self.layout = layout
        presence = old?.presence ?? 0
        let count = 2 * PageAddress.slots + 1 + layout.cellCount + 3 * layout.columns.count
        generations = .allocate(capacity: count)
        generations.initialize(repeating: 0, count: count)
        offsets = generations + PageAddress.slots
        cells = offsets + PageAddress.slots + 1
        states = cells + layout.cellCount
        borrowed = .allocate(capacity: 1)
        heapCapacity = old == nil ? 4096 : 256
        heap = .allocate(byteCount: heapCapacity, alignment: 8)
        guard let old else { return }
        for slot in 0..<old.capacity {
            let delta = old.base.unsigned(width: old.generationWidth, at: old.generations + slot * old.generationWidth)
            generations[slot] = old.baseGeneration &+ delta
        }
    }

    deinit {
        generations.deallocate()
        borrowed.deallocate()
        heap.deallocate()
    }

    /// Takes over the rows of a layer's page.
    mutating func gather(_ changes: LayerPage, _ numbers: CommitNumbers) throws(PageError) {
        presence &= ~changes.deleted
        let columns = layout.columns
        let rows = changes.rows
        for slot in SlotIterator(changes.inserted | changes.updated) {
            // Right because `rows` keeps the row: reading it so saves counting references, a third of the time of a row.
            let refused = rows.withUnsafeBytes { bytes in
                let stride = MemoryLayout<Row?>.stride
                return bytes.load(fromByteOffset: slot * stride, as: Unmanaged<Row>?.self)?._withUnsafeGuaranteedRef {
                    gather($0, slot, numbers)
                }
            }
            if let refused = refused ?? nil, let row = rows[slot] { throw misfit(refused, row) }
        }
        guard complete != 0 else { return }
        for index in columns.indices {
            let refused = gatherColumn(index, columns[index])
            if refused != 0, let row = rows[refused.trailingZeroBitCount] { throw misfit(index, row) }
        }
    }

    /// A row that sets every column is only noted, so that columns can be gathered one at a time; another is gathered at once.
    /// - Returns: the first column whose value does not fit; -1 when the row has another number of columns.
    @inline(__always)
    private mutating func gather(_ row: Row, _ slot: Int, _ numbers: CommitNumbers) -> Int? {
        let bit: UInt64 = 1 << UInt64(slot)
        let header = row.withUnsafeMutablePointerToHeader { $0.pointee }
        let isComplete = header.kind == .insert || header.set == layout.allColumns
        guard isComplete || presence & bit != 0 else { return nil }
        guard header.columnCount == layout.columns.count else { return -1 }
        presence |= bit
        generations[slot] = numbers.generation(of: header.version)
        return row.withValues { set, values in
            if isComplete {
                complete |= bit
                // Right because the layer's page keeps the row, and a row's values do not move.
                offsets[slot] = UInt64(UInt(bitPattern: values))
                return nil
            }
            var refused: Int?
            set.forEach { index in
                guard refused == nil, index < layout.columns.count else { return }
                states.set(bit, at: 3 * index)
                if case .null = values[index] {
                    states.set(bit, at: 3 * index + 1)
                    if !layout.columns[index].isOptional { refused = index }
                } else if !store(values + index, layout.columns[index], slot) {
                    refused = index
                }
            }
            return refused
        }
    }

    /// Gathers a column of all complete rows. The switch on the type is outside of the loop.
    /// - Returns: the bit of the first slot whose value does not fit, or 0.
    private mutating func gatherColumn(_ index: Int, _ column: PageLayout.Column) -> UInt64 {
        let cells = cells + column.cells
        switch column.code {
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32:
            return eachComplete(index, column) { _, value, slot in
                guard case .int(let number) = value.pointee else { return false }
                cells[slot] = UInt64(bitPattern: number)
                return number >= column.minimum && number <= column.maximum
            }
        case .double, .date:
            return eachComplete(index, column) { _, value, slot in
                guard case .double(let number) = value.pointee else { return false }
                cells[slot] = number.bitPattern
                return true
            }
        case .bool:
            return eachComplete(index, column) { _, value, slot in
                guard case .bool(let flag) = value.pointee else { return false }
                cells.set((flag ? 1 : 0) << UInt64(slot), at: 0)
                return true
            }
        case .reference:
            return eachComplete(index, column) { _, value, slot in
                guard case .reference(let key) = value.pointee else { return false }
                cells[slot] = key
                return true
            }
        case .string:
            return eachComplete(index, column) { encoder, value, slot in encoder.storeUncounted(value, cells + slot) }
        default:
            return eachComplete(index, column) { encoder, value, slot in encoder.store(value, column, slot) }
        }
    }

    @inline(__always)
    private mutating func eachComplete(
        _ index: Int, _ column: PageLayout.Column, _ store: (inout PageEncoder, UnsafePointer<Value>, Int) -> Bool
    ) -> UInt64 {
        var nulls: UInt64 = 0
        var rest = complete
        while rest != 0 {
            let slot = rest.trailingZeroBitCount
            // Put there when the row was noted.
            let values = UnsafePointer<Value>(bitPattern: UInt(offsets[slot])).unsafelyUnwrapped
            if case .null = values[index] {
                nulls |= 1 << UInt64(slot)
                if !column.isOptional { break }
            } else if !store(&self, values + index, slot) {
                break
            }
            rest &= rest &- 1
        }
        states.set(nulls, at: 3 * index + 1)
        return rest & (~rest &+ 1)
    }

    /// Gathers what the kept objects of an older page have in columns whose cells cannot be copied as they lie: those that are
    /// newer than the page, wider, or filled where they were null.
    mutating func gatherTranslated(_ old: ObjectPage) throws(PageError) {
        // Defaults stay in the page, whatever their size.
        limit = .max
        for index in layout.columns.indices where old.copyableColumn(index, as: layout.columns[index].code) == nil {
            let kept = old.presence & presence & ~(complete | states[3 * index])
            for slot in SlotIterator(kept) {
                if let record = try old.largeValue(slot, index) {
                    place(record, LargeValuePlace(slot: slot, column: index))
                    continue
                }
                let value = try old.value(slot, index)
                if value.isNull {
                    states.set(1 << UInt64(slot), at: 3 * index + 1)
                } else if !withUnsafePointer(to: value, { store($0, layout.columns[index], slot) }) {
                    throw PageError(value: layout.name(index), reason: "has a default that does not fit its type")
                }
            }
            states.set(kept, at: 3 * index)
        }
    }

    /// Puts one value that is not null among the cells; false when it does not fit the column.
    private mutating func store(_ value: UnsafePointer<Value>, _ column: PageLayout.Column, _ slot: Int) -> Bool {
        let cell = cells + column.cells + (column.shape == .uuid ? slot * 2 : slot)
        switch (column.code, value.pointee) {
        case (.int8, .int(let number)), (.int16, .int(let number)), (.int32, .int(let number)), (.int64, .int(let number)),
            (.uint8, .int(let number)), (.uint16, .int(let number)), (.uint32, .int(let number)):
            cell.pointee = UInt64(bitPattern: number)
            return number >= column.minimum && number <= column.maximum
        case (.uint64, .uint(let number)), (.reference, .reference(let number)): cell.pointee = number
        case (.double, .double(let number)), (.date, .double(let number)): cell.pointee = number.bitPattern
        case (.float, .double(let number)): cell.pointee = UInt64(Float(number).bitPattern)
        case (.bool, .bool(let flag)): if flag { cells.set(1 << UInt64(slot), at: column.cells) }
        case (.string, .string): return storeText(value.pointee, cell)
        case (.data, .data(let data)): return data.withUnsafeBytes { storeBytes($0, cell) }
        case (.uuid, .uuid(let uuid)):
            withUnsafeBytes(of: uuid.uuid) { bytes in
                cell[0] = bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)
                cell[1] = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
            }
        default: return false
        }
        return true
    }

    /// Reads a string without counting references, which would take as long as all the rest.
    ///
    /// Right because the bitwise copy in `borrowed` is never destroyed, and the row keeps the original.
    @inline(__always)
    private mutating func storeUncounted(_ value: UnsafePointer<Value>, _ cell: UnsafeMutablePointer<UInt64>) -> Bool {
        UnsafeMutableRawPointer(borrowed).copyMemory(from: value, byteCount: MemoryLayout<Value>.size)
        let owned = borrowed.move()
        let done = storeText(owned, cell)
        borrowed.initialize(to: consume owned)
        return done
    }

    @inline(never)
    private mutating func storeText(_ value: borrowing Value, _ cell: UnsafeMutablePointer<UInt64>) -> Bool {
        guard case .string(let text) = copy value else { return false }
        if let done = text.utf8.withContiguousStorageIfAvailable({ storeBytes(UnsafeRawBufferPointer($0), cell) }) { return done }
        return storeForeignText(text, cell)
    }

    /// Only strings bridged from Objective-C do not lie in one piece.
    @inline(never)
    private mutating func storeForeignText(_ text: String, _ cell: UnsafeMutablePointer<UInt64>) -> Bool {
        Array(text.utf8).withUnsafeBytes { storeBytes($0, cell) }
    }

    @inline(__always)
    private mutating func storeBytes(_ bytes: UnsafeRawBufferPointer, _ cell: UnsafeMutablePointer<UInt64>) -> Bool {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return true }
        if bytes.count > limit { return noteLarge(cell) }
        guard heapCount + bytes.count <= PageFormat.maximumByteCount else { return false }
        if heapCount + bytes.count + Self.shortCount > heapCapacity { growHeap(bytes.count) }
        (heap + heapCount).copyMemory(from: base, byteCount: bytes.count)
        cell.pointee = UInt64(heapCount) << 32 | UInt64(bytes.count)
        heapCount += bytes.count
        return true
    }

    @inline(never)
    private mutating func noteLarge(_ cell: UnsafeMutablePointer<UInt64>) -> Bool {
        let place = cell - cells
        guard let column = layout.columns.lastIndex(where: { $0.cells <= place }) else { return false }
        largeValues.append(LargeValuePlace(slot: place - layout.columns[column].cells, column: column))
        return true
    }

    /// Takes the record of a value that lies elsewhere.
    mutating func place(_ record: LargeValueRecord, _ place: LargeValuePlace) {
        if heapCount + LargeValueRecord.size + Self.shortCount > heapCapacity { growHeap(LargeValueRecord.size) }
        record.write(to: heap + heapCount)
        cells[layout.columns[place.column].cells + place.slot] = UInt64(heapCount) << 32 | UInt64(LargeValueRecord.size)
        states.set(1 << UInt64(place.slot), at: 3 * place.column + 2)
        heapCount += LargeValueRecord.size
    }

    @inline(never)
    private mutating func growHeap(_ count: Int) {
        heapCapacity = max(heapCapacity * 2, heapCount + count + Self.shortCount)
        let grown = UnsafeMutableRawPointer.allocate(byteCount: heapCapacity, alignment: 8)
        grown.copyMemory(from: heap, byteCount: heapCount)
        heap.deallocate()
        heap = grown
    }

    private func misfit(_ column: Int, _ row: Row) -> PageError {
        guard column >= 0 else {
            return PageError(
                value: layout.entity.name, reason: "has \(layout.columns.count) columns, but a row has \(row.columnCount)")
        }
        let value = row[column]
        let schema = layout.entity.columns[column]
        let kind =
            switch value {
            case .null: "null, but the column is not optional"
            case .int(let number): "the integer \(number), which does not fit type \(schema.type.rawValue)"
            case .string, .data: "a string or data that does not fit type \(schema.type.rawValue) or the page's 4 GB"
            default: "a value that does not fit type \(schema.type.rawValue)"
            }
        return PageError(value: layout.name(column), reason: "was set to \(kind)")
    }
}

extension UnsafeMutablePointer<UInt64> {
    /// Sets bits of a word. Not by `|=`, where Swift 6.3 tells the thread sanitizer the word instead of its address.
    @inline(__always)
    fileprivate func set(_ bits: UInt64, at index: Int) { self[index] = self[index] | bits }
}
