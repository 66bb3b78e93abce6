#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
import StoreInterface
import StoreModel

/// A source of out-of-line values: a transaction of a store.
public protocol LargeValueSource: AnyObject {
    /// Returns a stored chunk of a value of an entity, or nil if it is missing. Valid as long as other results of the
    /// transaction.
    func largeChunk(_ entity: EntityIndex, key: UInt64) throws(PageError) -> UnsafeRawBufferPointer?
}

/// The out-of-line values of one entity.
public struct LargeValues {
    // Right because the creator of a page view keeps the transaction as long as the view is used. Without it, the page's
    // bytes are invalid too.
    unowned(unsafe) private let source: any LargeValueSource
    private let entity: EntityIndex

    /// Creates the values of an entity. Does not retain `source`, which must exist as long as the result is used.
    @inline(__always)
    public init(_ source: any LargeValueSource, entity: EntityIndex) {
        self.source = source
        self.entity = entity
    }

    /// Returns one chunk after checking it.
    public func chunk(_ index: Int, of record: LargeValueRecord) throws(PageError) -> LargeChunk {
        let key = LargeChunk.key(record.number, index)
        guard let bytes = try source.largeChunk(entity, key: key) else {
            throw PageError(field: "large value \(record.number)", reason: "lacks chunk \(index) of \(record.chunkCount)")
        }
        let chunk = try LargeChunk(bytes, key: key)
        guard chunk.byteCount == record.byteCount(ofChunk: index) else {
            throw PageError(
                field: "large value \(record.number)",
                reason: "has \(chunk.byteCount) bytes in chunk \(index) instead of \(record.byteCount(ofChunk: index))")
        }
        return chunk
    }

    /// Calls `body` with the value's bytes, chunk by chunk, until it returns false. Needs memory for one chunk.
    public func eachChunk(
        of record: LargeValueRecord, _ body: (UnsafeRawBufferPointer) throws(PageError) -> Bool
    ) throws(PageError) {
        var buffer: UnsafeMutableRawBufferPointer?
        defer { buffer?.deallocate() }
        for index in 0..<record.chunkCount {
            let chunk = try chunk(index, of: record)
            if let bytes = chunk.rawBytes {
                guard try body(bytes) else { return }
                continue
            }
            let room = buffer ?? .allocate(byteCount: min(record.byteCount, LargeChunk.maximumByteCount), alignment: 8)
            buffer = room
            let part = UnsafeMutableRawBufferPointer(rebasing: room[..<chunk.byteCount])
            try chunk.unpack(into: part)
            guard try body(UnsafeRawBufferPointer(part)) else { return }
        }
    }

    /// Returns one chunk of the value in memory of its own.
    public func data(ofChunk index: Int, _ record: LargeValueRecord) throws(PageError) -> Data {
        let chunk = try chunk(index, of: record)
        if let bytes = chunk.rawBytes { return Data(bytes) }
        var part = Data(count: chunk.byteCount)
        let outcome: Result<Void, PageError> = part.withUnsafeMutableBytes { room in
            do throws(PageError) { return .success(try chunk.unpack(into: room)) } catch { return .failure(error) }
        }
        try outcome.get()
        return part
    }

    /// Returns the whole value in new memory.
    public func data(_ record: LargeValueRecord) throws(PageError) -> Data {
        // Reads the last chunk before it allocates the memory: a value without its end is damaged.
        _ = try chunk(record.chunkCount - 1, of: record)
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: record.byteCount, alignment: 8)
        do throws(PageError) {
            for index in 0..<record.chunkCount {
                let start = index * LargeChunk.maximumByteCount
                let part = room[start..<(start + record.byteCount(ofChunk: index))]
                try chunk(index, of: record).unpack(into: UnsafeMutableRawBufferPointer(rebasing: part))
            }
        } catch {
            room.deallocate()
            throw error
        }
        // The buffer is not empty, because an empty value has no record.
        return Data(
            bytesNoCopy: room.baseAddress.unsafelyUnwrapped, count: room.count,
            deallocator: .custom { pointer, _ in pointer.deallocate() })
    }

    /// Returns whether the value is valid UTF-8.
    public func isText(_ record: LargeValueRecord) throws(PageError) -> Bool {
        try withBytes(record) { bytes throws(PageError) in bytes.isASCII || String(checkedUTF8: bytes) != nil }
    }

    /// Calls `body` with all bytes of the value: in place if the value is one raw chunk, else in temporary memory.
    func withBytes<R>(
        _ record: LargeValueRecord, _ body: (UnsafeRawBufferPointer) throws(PageError) -> R
    ) throws(PageError) -> R {
        if record.chunkCount == 1, let bytes = try chunk(0, of: record).rawBytes { return try body(bytes) }
        let whole = try data(record)
        let outcome: Result<R, PageError> = whole.withUnsafeBytes { bytes in
            do throws(PageError) { return .success(try body(bytes)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}

extension ObjectPage {
    /// A Boolean value that indicates whether any value of the page is out-of-line.
    public var hasLargeValues: Bool {
        for column in storedColumns where section(column).outside != 0 { return true }
        return false
    }

    /// Returns the record of an out-of-line value, or nil if the value is in the page.
    ///
    /// Precondition: the slot is present, and the layout has the column.
    public func largeValue(_ slot: Int, _ column: ColumnIndex) throws(PageError) -> LargeValueRecord? {
        let section: Section
        if column.rawValue < columnCount {
            section = self.section(column)
        } else {
            switch olderContent(column) {
            case .section(let found), .filled(let found, _): section = found
            case .constant: return nil
            }
        }
        guard section.outside >> UInt64(slot) & 1 != 0 else { return nil }
        return try record(slot, in: section)
    }

    /// Calls `body` with all records of the page, including those of columns that a newer schema no longer has.
    public func eachLargeValue(_ body: (LargeValueRecord, LargeValueKind) throws -> Void) throws {
        for column in storedColumns {
            let section = section(column)
            for slot in SlotIterator(section.outside) {
                guard slot < capacity else { throw PageError(field: "out-of-line word", reason: "exceeds the capacity") }
                try body(try record(slot, in: section), section.code == .string ? .text : .data)
            }
        }
    }

    func record(_ slot: Int, in section: Section) throws(PageError) -> LargeValueRecord {
        try LargeValueRecord(try span(slot, in: section))
    }

    /// Returns the source of the page's large values.
    func largeSource() throws(PageError) -> LargeValues {
        guard let large else {
            throw PageError(field: "large value", reason: "cannot be read without the store that has it")
        }
        return large
    }

    /// Calls `body` with the bytes of an out-of-line string or data value.
    @inline(never)
    func withLargeSpan<R>(
        _ slot: Int, in section: Section, _ body: (UnsafeRawBufferPointer) throws(PageError) -> R
    ) throws(PageError) -> R {
        try largeSource().withBytes(try record(slot, in: section), body)
    }

    @inline(never)
    func largeString(_ slot: Int, in section: Section) throws(PageError) -> String {
        let text = try withLargeSpan(slot, in: section) { bytes throws(PageError) in String(checkedUTF8: bytes) }
        guard let text else { throw PageError(field: "large string", reason: "is not UTF-8") }
        return text
    }

    @inline(never)
    func largeData(_ slot: Int, in section: Section) throws(PageError) -> Data {
        try largeSource().data(try record(slot, in: section))
    }
}

/// The type of a large value.
public enum LargeValueKind: Sendable {
    case text, data
}
