import StoreInterface
import StoreModel

/// The parts of a change set that version 2 added: its origin, columns by object, and tombstones.
extension ChangeSetCodec {
    // MARK: Origin

    static func put(_ metadata: SaveMetadata, _ bytes: inout [UInt8]) {
        bytes.putString(metadata.author)
        bytes.putString(metadata.contextName)
        bytes.putNumber(UInt64(bitPattern: metadata.time))
        bytes.putNumber(UInt64(UInt32(bitPattern: metadata.processID)))
    }

    static func metadata(_ reader: inout ByteReader) throws(PageError) -> SaveMetadata {
        let author = try reader.string("author")
        let context = try reader.string("context name")
        let time = Int64(bitPattern: try reader.number("time"))
        let start = reader.offset
        guard let process = UInt32(exactly: try reader.number("process id")) else {
            throw PageError(offset: start, field: "process id", reason: "exceeds 32 bits")
        }
        return SaveMetadata(
            author: author, contextName: context, time: time, processID: Int32(bitPattern: process))
    }

    // MARK: Columns by object

    /// Appends the number of pages with groups. Then, for each of them, appends its position among the entity's pages and its
    /// groups.
    static func putGroups(_ pages: [ChangeSet.PageChange], _ bytes: inout [UInt8]) {
        bytes.putNumber(UInt64(pages.count { !$0.groups.isEmpty }))
        for (place, page) in pages.enumerated() where !page.groups.isEmpty {
            bytes.putNumber(UInt64(place))
            bytes.putNumber(UInt64(page.groups.count))
            for group in page.groups {
                bytes.putWord(group.slots)
                bytes.putNumber(group.columns.low)
                bytes.putNumber(group.columns.high)
            }
        }
    }

    static func readGroups(of pages: inout [ChangeSet.PageChange], _ reader: inout ByteReader) throws(PageError) {
        for _ in 0..<(try reader.count("pages with groups", size: 12)) {
            let start = reader.offset
            let place = try reader.integer("page of groups")
            guard pages.indices.contains(place), pages[place].groups.isEmpty else {
                throw PageError(offset: start, field: "page of groups", reason: "\(place) is no page, or has come before")
            }
            let count = try reader.count("group count", size: 10)
            guard count > 0 else {
                throw PageError(offset: reader.offset, field: "group count", reason: "is 0")
            }
            for _ in 0..<count {
                let slots = try reader.word("slots of a group")
                let low = try reader.number("columns of a group")
                let columns = ColumnSet(low: low, high: try reader.number("columns of a group"))
                pages[place].groups.append(.init(slots: slots, columns: columns))
            }
        }
    }

    // MARK: Tombstones

    private enum Tag {
        static let null: UInt8 = 0
        static let no: UInt8 = 1
        static let yes: UInt8 = 2
        static let int: UInt8 = 3
        static let uint: UInt8 = 4
        static let double: UInt8 = 5
        static let string: UInt8 = 6
        static let data: UInt8 = 7
        static let uuid: UInt8 = 8
        static let reference: UInt8 = 9
    }

    static func put(_ tombstone: Tombstone, _ bytes: inout [UInt8]) {
        bytes.putNumber(UInt64(tombstone.entity.rawValue))
        bytes.putNumber(tombstone.key.rawValue)
        bytes.putNumber(UInt64(tombstone.values.count))
        for preserved in tombstone.values {
            bytes.putNumber(UInt64(preserved.column.rawValue))
            put(preserved.value, &bytes)
        }
    }

    private static func put(_ value: Value, _ bytes: inout [UInt8]) {
        switch value {
        case .null: bytes.append(Tag.null)
        case .bool(let bool): bytes.append(bool ? Tag.yes : Tag.no)
        case .int(let number):
            bytes.append(Tag.int)
            bytes.putWord(UInt64(bitPattern: number))
        case .uint(let number):
            bytes.append(Tag.uint)
            bytes.putWord(number)
        case .double(let number):
            bytes.append(Tag.double)
            bytes.putWord(number.bitPattern)
        case .string(let text):
            bytes.append(Tag.string)
            bytes.putString(text)
        case .data(let data):
            bytes.append(Tag.data)
            bytes.putNumber(UInt64(data.count))
            bytes.append(contentsOf: data)
        case .uuid(let uuid):
            bytes.append(Tag.uuid)
            withUnsafeBytes(of: uuid.uuid) { bytes.append(contentsOf: $0) }
        case .reference(let key):
            bytes.append(Tag.reference)
            bytes.putNumber(key.rawValue)
        }
    }

    static func tombstones(_ reader: inout ByteReader) throws(PageError) -> [Tombstone] {
        let count = try reader.count("tombstone count", size: 3)
        var tombstones: [Tombstone] = []
        tombstones.reserveCapacity(count)
        for _ in 0..<count {
            let entity = EntityIndex(rawValue: try reader.integer("tombstone entity"))
            var tombstone = Tombstone(entity: entity, key: ObjectKey(rawValue: try reader.number("tombstone key")), values: [])
            for _ in 0..<(try reader.count("preserved value count", size: 2)) {
                let column = ColumnIndex(rawValue: try reader.integer("preserved column"))
                tombstone.values.append(.init(column: column, value: try value(&reader)))
            }
            tombstones.append(tombstone)
        }
        return tombstones
    }

    private static func value(_ reader: inout ByteReader) throws(PageError) -> Value {
        let start = reader.offset
        switch try reader.byte("preserved value") {
        case Tag.null: return .null
        case Tag.no: return .bool(false)
        case Tag.yes: return .bool(true)
        case Tag.int: return .int(Int64(bitPattern: try reader.word("preserved value")))
        case Tag.uint: return .uint(try reader.word("preserved value"))
        case Tag.double: return .double(Double(bitPattern: try reader.word("preserved value")))
        case Tag.string: return .string(try reader.string("preserved value"))
        case Tag.data: return .data(try reader.data("preserved value"))
        case Tag.uuid: return .uuid(try reader.uuid("preserved value"))
        case Tag.reference: return .reference(ObjectKey(rawValue: try reader.number("preserved value")))
        case let tag: throw PageError(offset: start, field: "preserved value", reason: "\(tag) is no kind of value")
        }
    }
}
