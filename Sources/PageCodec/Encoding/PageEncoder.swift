import StoreInterface
import StoreModel

/// An encoder that gathers the cells of changed rows column by column. It then writes a page from these cells and the old
/// page.
///
/// An encoder is used for one merge. The unsafe pointers are its own memory, one block and the heap, freed at the end.
struct PageEncoder: ~Copyable {
    var old: ObjectPage?
    let layout: PageLayout
    /// The number of the page.
    let number: PageNumber
    /// The gathered cells; zero where nothing was gathered. Numbers take 64 bits, a Bool column one word, and a UUID two
    /// words per slot.
    ///
    /// For strings and data, the low half is the byte count. The high half is the position in ``heap``, or for kept values in
    /// the old page's heap.
    let cells: UnsafeMutablePointer<UInt64>
    /// Three masks per column. They contain the slots of partial updates that set it, the slots whose row sets it to null,
    /// and the slots with a record of an out-of-line value.
    let states: UnsafeMutablePointer<UInt64>
    /// The generation per slot.
    let generations: UnsafeMutablePointer<UInt64>
    /// The offsets of a column while it is written. Before that, the addresses of the values of complete rows.
    let offsets: UnsafeMutablePointer<UInt64>
    /// Room for a bitwise copy of a value that the encoder does not own.
    private let borrowed: UnsafeMutablePointer<Value>
    private(set) var heap: UnsafeMutableRawPointer
    private(set) var heapCount = 0
    private var heapCapacity: Int
    /// The maximum size in bytes of strings and data in the page. Larger values are left out and recorded in ``largeValues``.
    private var limit: Int
    private(set) var largeValues: [LargeValueSlot] = []

    /// The slots of the new page that have an object.
    var presence: UInt64
    /// The slots whose columns all come from a row.
    private(set) var complete: UInt64 = 0

    /// The length up to which strings are copied as two words. Heaps have that much room to spare.
    static let shortCount = 16

    init(old: ObjectPage?, layout: PageLayout, number: PageNumber, limit: Int) {
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
            generations[slot] = old.baseGeneration.rawValue &+ delta
        }
    }

    deinit {
        generations.deallocate()
        borrowed.deallocate()
        heap.deallocate()
    }

    /// Gathers the rows of a layer's page.
    mutating func gather(_ changes: LayerPage, _ numbers: CommitNumbers) throws(PageError) {
        presence &= ~changes.deleted
        let columns = layout.columns
        for slot in SlotIterator(changes.inserted | changes.updated) {
            let refused = changes.withRow(slot) { gather($0, slot: slot, numbers: numbers) }
            if let refused = refused ?? nil, let row = changes[slot] { throw misfit(refused, row) }
        }
        guard complete != 0 else { return }
        for index in layout.indices {
            let refused = gatherColumn(index.rawValue, columns[index])
            if refused != 0, let row = changes[refused.trailingZeroBitCount] { throw misfit(index, row) }
        }
    }

    /// Gathers a row. A row that sets every column is only recorded, so that its columns can be gathered later, one at a
    /// time.
    /// - Returns: The first column whose value does not fit, or -1 if the row has another number of columns.
    @inline(__always)
    private mutating func gather(_ row: Row, slot: Int, numbers: CommitNumbers) -> ColumnIndex? {
        let bit: UInt64 = 1 << UInt64(slot)
        let isComplete = row.kind == .insert || row.set == layout.allColumns
        guard isComplete || presence & bit != 0 else { return nil }
        guard row.columnCount == layout.columns.count else { return -1 }
        presence |= bit
        generations[slot] = numbers.generation(of: row.version).rawValue
        return row.withValues { set, values in
            if isComplete {
                complete |= bit
                // Right because the layer's page keeps the row alive, and a row's values do not move.
                offsets[slot] = UInt64(UInt(bitPattern: values))
                return nil
            }
            var refused: ColumnIndex?
            set.forEach { index in
                let place = index.rawValue
                guard refused == nil, place < layout.columns.count else { return }
                states.set(bit, at: 3 * place)
                if case .null = values[place] {
                    states.set(bit, at: 3 * place + 1)
                    if !layout.columns[index].isOptional { refused = index }
                } else if !store(values + place, column: layout.columns[index], slot: slot) {
                    refused = index
                }
            }
            return refused
        }
    }

    /// Gathers a column of all complete rows. The switch on the type is outside the loop.
    /// - Returns: The bit of the first slot whose value does not fit, or 0.
    private mutating func gatherColumn(_ index: Int, _ column: PageLayout.Column) -> UInt64 {
        let cells = cells + column.cells
        switch column.code {
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32:
            return eachComplete(index, column: column) { _, value, slot in
                guard case .int(let number) = value.pointee else { return false }
                cells[slot] = UInt64(bitPattern: number)
                return number >= column.minimum && number <= column.maximum
            }
        case .double, .date:
            return eachComplete(index, column: column) { _, value, slot in
                guard case .double(let number) = value.pointee else { return false }
                cells[slot] = number.bitPattern
                return true
            }
        case .bool:
            return eachComplete(index, column: column) { _, value, slot in
                guard case .bool(let flag) = value.pointee else { return false }
                cells.set((flag ? 1 : 0) << UInt64(slot), at: 0)
                return true
            }
        case .reference:
            return eachComplete(index, column: column) { _, value, slot in
                guard case .reference(let key) = value.pointee else { return false }
                cells[slot] = key.rawValue
                return true
            }
        case .string:
            return eachComplete(index, column: column) { encoder, value, slot in encoder.storeUncounted(value, cells + slot) }
        default:
            return eachComplete(index, column: column) { encoder, value, slot in encoder.store(value, column: column, slot: slot)
            }
        }
    }

    @inline(__always)
    private mutating func eachComplete(
        _ index: Int, column: PageLayout.Column, _ store: (inout PageEncoder, UnsafePointer<Value>, Int) -> Bool
    ) -> UInt64 {
        var nulls: UInt64 = 0
        var rest = complete
        while rest != 0 {
            let slot = rest.trailingZeroBitCount
            // The address was stored when the row was recorded.
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

    /// Gathers cells of kept objects in an older page for columns whose cells cannot be copied unchanged. Such columns are
    /// newer than the page, have a wider type, or are filled where they were null.
    mutating func gatherTranslated(_ old: ObjectPage) throws(PageError) {
        // Defaults stay in the page, whatever their size.
        limit = .max
        for index in layout.indices where old.copyableColumn(index, as: layout.columns[index].code) == nil {
            let kept = old.presence & presence & ~(complete | states[3 * index.rawValue])
            for slot in SlotIterator(kept) {
                if let record = try old.largeValue(slot, index) {
                    place(record, LargeValueSlot(slot: slot, column: index))
                    continue
                }
                let value = try old.value(slot, index)
                if value.isNull {
                    states.set(1 << UInt64(slot), at: 3 * index.rawValue + 1)
                } else if !withUnsafePointer(to: value, { store($0, column: layout.columns[index], slot: slot) }) {
                    throw PageError(value: layout.name(index), reason: "has a default that does not fit its type")
                }
            }
            states.set(kept, at: 3 * index.rawValue)
        }
    }

    /// Stores a value that is not null among the cells. Returns false if it does not fit the column.
    private mutating func store(_ value: UnsafePointer<Value>, column: PageLayout.Column, slot: Int) -> Bool {
        let cell = cells + column.cells + (column.shape == .uuid ? slot * 2 : slot)
        switch (column.code, value.pointee) {
        case (.int8, .int(let number)), (.int16, .int(let number)), (.int32, .int(let number)), (.int64, .int(let number)),
            (.uint8, .int(let number)), (.uint16, .int(let number)), (.uint32, .int(let number)):
            cell.pointee = UInt64(bitPattern: number)
            return number >= column.minimum && number <= column.maximum
        case (.uint64, .uint(let number)): cell.pointee = number
        case (.reference, .reference(let key)): cell.pointee = key.rawValue
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

    /// Stores a string without reference counting, which would take as long as the rest of the work.
    ///
    /// Right because the bitwise copy in `borrowed` is never destroyed, and the row keeps the original alive.
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

    /// Stores a string whose UTF-8 is not contiguous. Only strings bridged from Objective-C are like this.
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
        guard let column = layout.indices.last(where: { layout.columns[$0].cells <= place }) else { return false }
        largeValues.append(LargeValueSlot(slot: place - layout.columns[column].cells, column: column))
        return true
    }

    /// Stores the record of an out-of-line value.
    mutating func place(_ record: LargeValueRecord, _ place: LargeValueSlot) {
        if heapCount + LargeValueRecord.size + Self.shortCount > heapCapacity { growHeap(LargeValueRecord.size) }
        record.write(to: heap + heapCount)
        cells[layout.columns[place.column].cells + place.slot] = UInt64(heapCount) << 32 | UInt64(LargeValueRecord.size)
        states.set(1 << UInt64(place.slot), at: 3 * place.column.rawValue + 2)
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

    private func misfit(_ column: ColumnIndex, _ row: Row) -> PageError {
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
    /// Sets bits of a word. Does not use `|=`, for which Swift 6.3 passes the word instead of its address to the thread
    /// sanitizer.
    @inline(__always)
    fileprivate func set(_ bits: UInt64, at index: Int) { self[index] = self[index] | bits }
}
