import StoreInterface

/// Gathers the cells of changed rows column by column, then writes a page from them and the old page.
///
/// Lives for one merge. The unsafe pointers are its own memory, freed at the end.
final class PageEncoder {
    let old: ObjectPage?
    let layout: PageLayout
    /// Zero where nothing was gathered. Numbers as 64 bits; a Bool column is one word; a UUID two words a slot; of strings and
    /// data the position in ``heap`` (or, for kept ones, in the old page's heap) in the high half and the count in the low half.
    let cells: UnsafeMutablePointer<UInt64>
    let states: UnsafeMutablePointer<ColumnState>
    /// One a slot, and one more so that it can hold a column's offsets as well.
    let words: UnsafeMutablePointer<UInt64>
    private(set) var heap: UnsafeMutableRawPointer
    private(set) var heapCount = 0
    private var heapCapacity: Int

    /// The slots of the new page that hold an object.
    var presence: UInt64
    /// Slots all of whose columns come from a row.
    private(set) var complete: UInt64 = 0
    private(set) var changed: UInt64 = 0

    struct ColumnState {
        /// Slots of partial updates that set the column.
        var set: UInt64 = 0
        /// Slots whose row sets the column to null.
        var nulls: UInt64 = 0
    }

    /// Strings up to this length are copied as two words, so heaps have that much room to spare.
    static let shortCount = 16

    init(old: ObjectPage?, layout: PageLayout) {
        self.old = old
        self.layout = layout
        presence = old?.presence ?? 0
        cells = .allocate(capacity: layout.cellCount + 1)
        cells.initialize(repeating: 0, count: layout.cellCount + 1)
        states = .allocate(capacity: layout.columns.count + 1)
        states.initialize(repeating: ColumnState(), count: layout.columns.count + 1)
        words = .allocate(capacity: PageAddress.slots + 1)
        words.initialize(repeating: 0, count: PageAddress.slots + 1)
        heapCapacity = 4096
        heap = .allocate(byteCount: heapCapacity, alignment: 8)
        guard let old else { return }
        for slot in 0..<old.capacity {
            let delta = old.base.unsigned(width: old.generationWidth, at: old.generations + slot * old.generationWidth)
            words[slot] = old.baseGeneration &+ delta
        }
    }

    deinit {
        cells.deallocate()
        states.deallocate()
        words.deallocate()
        heap.deallocate()
    }

    /// Takes over the rows of a layer's page.
    func gather(_ changes: LayerPage) throws(PageError) {
        presence &= ~changes.deleted
        for slot in SlotIterator(changes.inserted | changes.updated) {
            guard let row = changes[slot] else { continue }
            let bit: UInt64 = 1 << UInt64(slot)
            let isComplete = row.kind == .insert || row.set == layout.allColumns
            guard isComplete || presence & bit != 0 else { continue }
            guard row.columnCount == layout.columns.count else {
                throw PageError(
                    field: layout.entity.name, reason: "has \(layout.columns.count) columns, but a row has \(row.columnCount)")
            }
            let refused = isComplete ? gatherAll(row, slot) : gatherSet(row, slot)
            if let refused { throw misfit(refused, row[refused]) }
            if isComplete { complete |= bit }
            presence |= bit
            changed |= bit
            words[slot] = row.version
        }
    }

    /// - Returns: the first column whose value does not fit.
    @inline(__always)
    private func gatherAll(_ row: Row, _ slot: Int) -> Int? {
        layout.columns.withUnsafeBufferPointer { columns in
            row.withValues { _, values in
                for column in 0..<columns.count where !store(values + column, columns[column], states + column, slot) {
                    return column
                }
                return nil
            }
        }
    }

    private func gatherSet(_ row: Row, _ slot: Int) -> Int? {
        layout.columns.withUnsafeBufferPointer { columns in
            row.withValues { set, values in
                var refused: Int?
                set.forEach { column in
                    guard refused == nil, column < columns.count else { return }
                    states[column].set |= 1 << UInt64(slot)
                    if !store(values + column, columns[column], states + column, slot) { refused = column }
                }
                return refused
            }
        }
    }

    /// Puts one value among the cells; false when it does not fit the column.
    @inline(__always)
    private func store(
        _ value: UnsafePointer<Value>, _ column: PageLayout.Column, _ state: UnsafeMutablePointer<ColumnState>, _ slot: Int
    ) -> Bool {
        let cell = cells + column.cells + slot
        switch value.pointee {
        case .null:
            state.pointee.nulls |= 1 << UInt64(slot)
            return column.isOptional
        case .int(let number):
            cell.pointee = UInt64(bitPattern: number)
            return number >= column.minimum && number <= column.maximum
        case .double(let number):
            if column.code == .float {
                cell.pointee = UInt64(Float(number).bitPattern)
                return true
            }
            cell.pointee = number.bitPattern
            return column.shape == .real
        case .string(let text):
            return column.code == .string && storeText(text, cell)
        case .reference(let key):
            cell.pointee = key
            return column.code == .reference
        case .bool(let flag):
            if flag { cells[column.cells] |= 1 << UInt64(slot) }
            return column.code == .bool
        default:
            return storeRare(value, column, slot)
        }
    }

    @inline(never)
    private func storeRare(_ value: UnsafePointer<Value>, _ column: PageLayout.Column, _ slot: Int) -> Bool {
        switch value.pointee {
        case .uint(let number):
            cells[column.cells + slot] = number
            return column.code == .uint64
        case .data(let data):
            return column.code == .data && data.withUnsafeBytes { storeBytes($0, cells + column.cells + slot) }
        case .uuid(let uuid):
            guard column.code == .uuid else { return false }
            withUnsafeBytes(of: uuid.uuid) { bytes in
                let pair = cells + column.cells + slot * 2
                pair[0] = bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)
                pair[1] = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
            }
            return true
        default:
            return false
        }
    }

    @inline(__always)
    private func storeText(_ text: String, _ cell: UnsafeMutablePointer<UInt64>) -> Bool {
        var text = text
        return text.withUTF8 { storeBytes(UnsafeRawBufferPointer($0), cell) }
    }

    @inline(__always)
    private func storeBytes(_ bytes: UnsafeRawBufferPointer, _ cell: UnsafeMutablePointer<UInt64>) -> Bool {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return true }
        guard heapCount + bytes.count <= PageFormat.maximumByteCount else { return false }
        if heapCount + bytes.count + Self.shortCount > heapCapacity { growHeap(bytes.count) }
        (heap + heapCount).copyMemory(from: base, byteCount: bytes.count)
        cell.pointee = UInt64(heapCount) << 32 | UInt64(bytes.count)
        heapCount += bytes.count
        return true
    }

    @inline(never)
    private func growHeap(_ count: Int) {
        heapCapacity = max(heapCapacity * 2, heapCount + count + Self.shortCount)
        let grown = UnsafeMutableRawPointer.allocate(byteCount: heapCapacity, alignment: 8)
        grown.copyMemory(from: heap, byteCount: heapCount)
        heap.deallocate()
        heap = grown
    }

    private func misfit(_ column: Int, _ value: Value) -> PageError {
        let schema = layout.entity.columns[column]
        let kind =
            switch value {
            case .null: "null, but the column is not optional"
            case .int(let number): "the integer \(number), which does not fit type \(schema.type.rawValue)"
            case .string, .data: "a string or data that does not fit type \(schema.type.rawValue) or the page's 4 GB"
            default: "a value that does not fit type \(schema.type.rawValue)"
            }
        return PageError(field: layout.name(column), reason: "was set to \(kind)")
    }
}
