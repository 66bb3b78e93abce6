import StoreInterface
import StoreModel

/// The codec's description of one entity. It is created once and shared by all threads.
public final class PageLayout: Sendable {
    /// The schema of the entity, which determines the columns of a page.
    public let entity: EntitySchema
    /// The schema number in the pages of this layout.
    public let schemaNumber: UInt32
    /// The entity's number in the file, for the checksums of its pages; nil in files of format 1.
    public let entityNumber: Int?
    let columns: ContiguousArray<Column>
    /// The positions of all columns.
    var indices: Range<ColumnIndex> { entity.columnIndices }
    /// The number of 64-bit words for one page's cells of all columns.
    let cellCount: Int
    let allColumns: ColumnSet
    /// The translations of pages of older schemas, by schema number; nil where there is no older schema.
    private let older: [PageTranslation?]

    struct Column: Sendable {
        var code: ColumnCode
        var shape: ColumnCode.Shape
        var isOptional: Bool
        /// The index of the column's first word among the cells.
        var cells: Int
        /// The range of `.int` values; empty for other storage classes.
        var minimum: Int64
        var maximum: Int64
        /// The allowed widths as a mask.
        var widths: UInt32
        /// The bits of a directory entry that are the same in every page, and their values: the type, the flags that the type cannot
        /// have, and the reserved byte.
        let fixedMask: UInt64
        let fixedBits: UInt64
        // The terms of the size of a section: some bytes, and cells for the slots or one more.
        private let plainSize: Int
        private let cellsPerSlot: Int
        private let moreCells: Int

        init(_ column: ColumnSchema, range: (minimum: Int64, maximum: Int64), cells: Int) {
            code = ColumnCode(column.type)
            shape = code.shape
            isOptional = column.isOptional
            self.cells = cells
            (minimum, maximum) = range
            widths = code.allowedWidths
            let flags = shape == .heap ? PageFormat.nullWordFlag | PageFormat.outsideWordFlag : PageFormat.nullWordFlag
            fixedMask = DirectoryEntry.bits(type: .max, flags: ~flags, reserved: .max)
            fixedBits = DirectoryEntry.bits(type: code.rawValue, flags: 0, reserved: 0)
            plainSize = shape == .bits ? 8 : 0
            cellsPerSlot = shape == .bits ? 0 : 1
            moreCells = shape == .heap ? 1 : 0
        }

        @inline(__always)
        func allowsWidth(_ width: Int) -> Bool { width <= 16 && widths >> UInt32(truncatingIfNeeded: width) & 1 != 0 }

        /// Returns the size of a section after its null word, without the heap.
        @inline(__always)
        func arraySize(width: Int, capacity: Int) -> Int {
            plainSize &+ width &* (cellsPerSlot &* capacity &+ moreCells)
        }
    }

    /// A former schema of the entity, whose pages may still exist.
    public struct Older: Sendable {
        /// The schema number in pages of the former schema.
        public var schemaNumber: UInt32
        /// The former schema of the entity.
        public var entity: EntitySchema
        /// The sources, per column of the newer schema.
        public var sources: [ColumnSource]

        /// Creates a former schema. `sources` has one element per column of the newer schema.
        public init(schemaNumber: UInt32, entity: EntitySchema, sources: [ColumnSource]) {
            self.schemaNumber = schemaNumber
            self.entity = entity
            self.sources = sources
        }
    }

    /// Creates a layout.
    /// - Parameters:
    ///   - entity: The entity, with its columns.
    ///   - schemaNumber: The number of the schema in the file, which each page of this layout contains.
    ///   - entityNumber: The entity's number in the file; nil if the file has format 1, whose checksums do not include it.
    ///   - older: The older schemas, with numbers below `schemaNumber`. Pages with other numbers are refused.
    /// - Throws: ``PageError`` if the entity has more columns than a `ColumnSet` can contain.
    public init(_ entity: EntitySchema, schemaNumber: UInt32, entityNumber: Int? = nil, older: [Older] = []) throws {
        guard entity.columns.count <= EntitySchema.maximumColumns else {
            throw PageError(
                field: entity.name,
                reason: "has \(entity.columns.count) columns; at most \(EntitySchema.maximumColumns) fit, so split the entity")
        }
        self.entity = entity
        self.schemaNumber = schemaNumber
        self.entityNumber = entityNumber
        (columns, cellCount) = Self.columns(of: entity)
        allColumns = ColumnSet(first: entity.columns.count)
        var translations = [PageTranslation?](repeating: nil, count: older.isEmpty ? 0 : Int(schemaNumber))
        for schema in older {
            translations[Int(schema.schemaNumber)] = PageTranslation(schema.entity, sources: schema.sources, newer: entity)
        }
        self.older = translations
    }

    /// Returns the place of a page of this layout, or nil if checksums do not cover it.
    public func place(_ number: PageNumber) -> PageLocation? {
        entityNumber.map { PageLocation(entityNumber: $0, number: number) }
    }

    /// The format version of the layout's pages.
    @inline(__always)
    var formatVersion: UInt16 { entityNumber == nil ? PageFormat.version : PageLocation.formatVersion }

    static func columns(of entity: EntitySchema) -> (columns: ContiguousArray<Column>, cellCount: Int) {
        var cells = 0
        let columns = entity.columns.map { column in
            defer { cells += PageAddress.slots * (column.type == .uuid ? 2 : 1) }
            return Column(column, range: Self.integerRange(column.type), cells: cells)
        }
        return (ContiguousArray(columns), cells)
    }

    /// Returns the translation of pages with another schema number.
    @inline(never)
    func translation(_ number: UInt32) throws(PageError) -> PageTranslation {
        guard number < older.count, let found = older[Int(number)] else {
            throw PageError(
                offset: PageFormat.schemaNumberOffset, field: "schema number",
                reason: number > schemaNumber
                    ? "\(number) is newer than \(schemaNumber), which this process opened the file with; open it again"
                    : "\(number) does not belong to \(entity.name)")
        }
        return found
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

    func name(_ column: ColumnIndex) -> String {
        column.rawValue < entity.columns.count
            ? "\(entity.name).\(entity.columns[column].name)" : "\(entity.name) column \(column)"
    }
}
