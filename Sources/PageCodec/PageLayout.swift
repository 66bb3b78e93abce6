import StoreInterface

/// What the codec knows of one entity. Made once, shared by all threads.
public struct PageLayout: Sendable {
    public let entity: EntitySchema
    /// The number that pages of this layout carry.
    public let schemaNumber: UInt32
    let columns: ContiguousArray<Column>
    /// 64-bit words that hold one page's cells of all columns.
    let cellCount: Int
    let allColumns: ColumnSet

    struct Column: Sendable {
        var code: ColumnCode
        var shape: ColumnCode.Shape
        var isOptional: Bool
        /// The first of the column's words among the cells.
        var cells: Int
        /// The range of `.int` values; empty for other storage classes.
        var minimum: Int64
        var maximum: Int64
        /// As bits.
        var widths: UInt32

        @inline(__always)
        func allowsWidth(_ width: Int) -> Bool { width <= 16 && widths >> UInt32(width) & 1 != 0 }

        /// The bytes of a section behind its null word, without the heap.
        @inline(__always)
        func arraySize(width: Int, capacity: Int) -> Int {
            switch shape {
            case .bits: 8
            case .heap: width &* (capacity &+ 1)
            default: width &* capacity
            }
        }
    }

    /// - Throws: ``PageError`` when the entity has more columns than a ``ColumnSet`` holds.
    public init(_ entity: EntitySchema, schemaNumber: UInt32) throws {
        guard entity.columns.count <= EntitySchema.maximumColumns else {
            throw PageError(
                field: entity.name,
                reason: "has \(entity.columns.count) columns; at most \(EntitySchema.maximumColumns) fit, so split the entity")
        }
        self.entity = entity
        self.schemaNumber = schemaNumber
        var cells = 0
        columns = ContiguousArray(
            entity.columns.map { column in
                defer { cells += PageAddress.slots * (column.type == .uuid ? 2 : 1) }
                let code = ColumnCode(column.type)
                let range = Self.integerRange(column.type)
                return Column(
                    code: code, shape: code.shape, isOptional: column.isOptional, cells: cells,
                    minimum: range.minimum, maximum: range.maximum, widths: code.allowedWidths)
            })
        cellCount = cells
        allColumns = ColumnSet(first: entity.columns.count)
    }

    private static func integerRange(_ type: ColumnType) -> (minimum: Int64, maximum: Int64) {
        switch type {
        case .int8: (-0x80, 0x7F)
        case .int16: (-0x8000, 0x7FFF)
        case .int32: (-0x8000_0000, 0x7FFF_FFFF)
        case .int64: (.min, .max)
        case .uint8: (0, 0xFF)
        case .uint16: (0, 0xFFFF)
        case .uint32: (0, 0xFFFF_FFFF)
        default: (1, 0)
        }
    }

    func name(_ column: Int) -> String {
        column < entity.columns.count ? "\(entity.name).\(entity.columns[column].name)" : "\(entity.name) column \(column)"
    }
}
