import StoreInterface
import StoreModel

/// The encoding of change sets in the history. `Docs/Internals/FileFormat.md` has the table.
public enum ChangeSetCodec {
    static let version: UInt8 = 2
    /// The version of rows without time, context, process, groups and tombstones.
    static let oldestVersion: UInt8 = 1
    private static let seed: UInt64 = 0x4843_5453

    /// The encoding of one of a page's three masks. It takes two bits per mask.
    private enum MaskForm {
        static let none: UInt8 = 0
        /// One byte follows, the slot.
        static let single: UInt8 = 1
        static let all: UInt8 = 2
        /// The mask follows as a word.
        static let word: UInt8 = 3
    }

    private enum ColumnsForm {
        static let low: UInt8 = 0x40
        static let high: UInt8 = 0x80
    }

    /// Encodes a change set. O(pages + link ends); about 3 to 30 bytes per page. Ascending numbers are written as
    /// differences.
    public static func encode(_ set: ChangeSet) -> [UInt8] {
        var bytes: [UInt8] = [version]
        bytes.putNumber(set.generation.rawValue)
        put(set.metadata, &bytes)
        bytes.putNumber(UInt64(set.entities.count))
        for entity in set.entities {
            bytes.putNumber(UInt64(entity.entity.rawValue))
            bytes.putNumber(UInt64(entity.pages.count))
            var last: UInt64 = 0
            for page in entity.pages {
                bytes.putNumber(page.number.rawValue &- last)
                last = page.number.rawValue
                put(page, &bytes)
            }
            putGroups(entity.pages, &bytes)
        }
        bytes.putNumber(UInt64(set.links.count))
        for link in set.links {
            bytes.putNumber(UInt64(link.link.rawValue))
            put(link.sources, &bytes)
            put(link.destinations, &bytes)
        }
        bytes.putNumber(UInt64(set.tombstones.count))
        for tombstone in set.tombstones { put(tombstone, &bytes) }
        let checksum = bytes.withUnsafeBytes { self.checksum($0) }
        withUnsafeBytes(of: checksum.littleEndian) { bytes.append(contentsOf: $0) }
        return bytes
    }

    static func checksum(_ body: UnsafeRawBufferPointer) -> UInt32 {
        UInt32(truncatingIfNeeded: PageHash.hash(body, seed: seed))
    }

    private static func put(_ keys: [ObjectKey], _ bytes: inout [UInt8]) {
        bytes.putNumber(UInt64(keys.count))
        var last: UInt64 = 0
        for key in keys {
            bytes.putNumber(key.rawValue &- last)
            last = key.rawValue
        }
    }

    private static func put(_ page: ChangeSet.PageChange, _ bytes: inout [UInt8]) {
        let masks = [page.inserted, page.updated, page.deleted]
        var forms: UInt8 = 0
        for (i, mask) in masks.enumerated() { forms |= form(mask) << UInt8(i * 2) }
        if page.columns.low != 0 { forms |= ColumnsForm.low }
        if page.columns.high != 0 { forms |= ColumnsForm.high }
        bytes.append(forms)
        for mask in masks {
            switch form(mask) {
            case MaskForm.single: bytes.append(UInt8(mask.trailingZeroBitCount))
            case MaskForm.word: bytes.putWord(mask)
            default: break
            }
        }
        if page.columns.low != 0 { bytes.putNumber(page.columns.low) }
        if page.columns.high != 0 { bytes.putNumber(page.columns.high) }
    }

    private static func form(_ mask: UInt64) -> UInt8 {
        switch mask.nonzeroBitCount {
        case 0: MaskForm.none
        case 1: MaskForm.single
        case 64: MaskForm.all
        default: MaskForm.word
        }
    }

    /// Decodes a change set.
    /// - Throws: ``PageError`` for bytes that are not a change set. Entity and link numbers are not checked against a schema.
    public static func decode(_ bytes: UnsafeRawBufferPointer) throws(PageError) -> ChangeSet {
        guard bytes.count >= 5 else { throw PageError(offset: bytes.count, field: "change set", reason: "is too short") }
        guard bytes[0] >= oldestVersion, bytes[0] <= version else {
            throw PageError(field: "change set version", reason: "\(bytes[0]) is unknown; this library reads up to \(version)")
        }
        let body = UnsafeRawBufferPointer(rebasing: bytes.dropLast(4))
        let checksum = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: body.count, as: UInt32.self))
        guard checksum == self.checksum(body) else {
            throw PageError(offset: body.count, field: "change set checksum", reason: "does not fit the bytes")
        }
        var reader = ByteReader(body)
        let isOld = try reader.byte("change set version") < version
        var set = ChangeSet(generation: Generation(rawValue: try reader.number("generation")))
        set.metadata = isOld ? SaveMetadata(author: try reader.string("author")) : try metadata(&reader)
        let entities = try reader.count("entity count", size: 2)
        set.entities.reserveCapacity(entities)
        for _ in 0..<entities {
            var change = try entity(&reader)
            if !isOld { try readGroups(of: &change.pages, &reader) }
            set.entities.append(change)
        }
        let links = try reader.count("link count", size: 3)
        set.links.reserveCapacity(links)
        for _ in 0..<links {
            let link = LinkIndex(rawValue: try reader.integer("link"))
            let sources = try keys(&reader, "sources")
            set.links.append(.init(link: link, sources: sources, destinations: try keys(&reader, "destinations")))
        }
        if !isOld { set.tombstones = try tombstones(&reader) }
        guard reader.rest == 0 else {
            throw PageError(offset: reader.offset, field: "change set", reason: "has \(reader.rest) bytes too many")
        }
        return set
    }

    private static func entity(_ reader: inout ByteReader) throws(PageError) -> ChangeSet.EntityChange {
        var entity = ChangeSet.EntityChange(entity: EntityIndex(rawValue: try reader.integer("entity")), pages: [])
        let pages = try reader.count("page count", size: 2)
        entity.pages.reserveCapacity(pages)
        var last: UInt64 = 0
        for _ in 0..<pages {
            last &+= try reader.number("page number")
            entity.pages.append(try page(PageNumber(rawValue: last), &reader))
        }
        return entity
    }

    private static func page(_ number: PageNumber, _ reader: inout ByteReader) throws(PageError) -> ChangeSet.PageChange {
        let forms = try reader.byte("page forms")
        let inserted = try mask(forms & 3, &reader)
        let updated = try mask(forms >> 2 & 3, &reader)
        let deleted = try mask(forms >> 4 & 3, &reader)
        var columns = ColumnSet()
        if forms & ColumnsForm.low != 0 { columns.low = try reader.number("columns") }
        if forms & ColumnsForm.high != 0 { columns.high = try reader.number("columns") }
        return .init(number: number, inserted: inserted, updated: updated, deleted: deleted, columns: columns)
    }

    private static func mask(_ form: UInt8, _ reader: inout ByteReader) throws(PageError) -> UInt64 {
        switch form {
        case MaskForm.none: return 0
        case MaskForm.all: return ~0
        case MaskForm.word: return try reader.word("mask")
        default:
            let slot = try reader.byte("slot")
            guard slot < PageAddress.slots else {
                throw PageError(offset: reader.offset - 1, field: "slot", reason: "\(slot) is not below 64")
            }
            return 1 << UInt64(slot)
        }
    }

    private static func keys(_ reader: inout ByteReader, _ field: String) throws(PageError) -> [ObjectKey] {
        let count = try reader.count(field, size: 1)
        var keys: [ObjectKey] = []
        keys.reserveCapacity(count)
        var last: UInt64 = 0
        for _ in 0..<count {
            last &+= try reader.number(field)
            keys.append(ObjectKey(rawValue: last))
        }
        return keys
    }
}
