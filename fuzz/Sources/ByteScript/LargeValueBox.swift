import PageCodec
import StoreInterface

/// Keeps large values in memory, as a store keeps them in a table.
public final class LargeValueBox: LargeValueSource {
    public var chunks: [UInt64: [UInt8]] = [:]
    private var next: UInt64 = 1
    // Safe because each buffer is freed with the box, which outlives the pages that are read with it.
    private var lent: [UnsafeMutableRawBufferPointer] = []

    public init() {}

    deinit { for room in lent { room.deallocate() } }

    public func largeChunk(_ entity: EntityIndex, key: UInt64) throws(PageError) -> UnsafeRawBufferPointer? {
        guard let bytes = chunks[key] else { return nil }
        // The buffer has exactly the size of the bytes, so that the sanitizer detects a read beyond them.
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
        room.copyBytes(from: bytes)
        lent.append(room)
        return UnsafeRawBufferPointer(room)
    }

    /// Frees the buffers of all reads. Nothing that was read may be used any more.
    public func takeBack() {
        for room in lent { room.deallocate() }
        lent = []
    }

    public enum Form { case raw, packed }

    public func add(_ bytes: [UInt8], _ form: Form) throws -> LargeValueRecord {
        let packer = try LargeChunkPacker.take()
        defer { LargeChunkPacker.give(packer) }
        let number = next
        next += 1
        return try bytes.withUnsafeBytes { bytes in
            try packer.write(bytes, number: number) { _, _ in
                form == .packed
            } put: { key, byteCount, fill in
                var chunk = [UInt8](repeating: 0, count: byteCount)
                chunk.withUnsafeMutableBytes(fill)
                chunks[key] = chunk
            }
        }
    }

    /// Merges a page. Strings and data longer than the limit are put into this box.
    public func merge(_ old: ObjectPage?, _ changes: LayerPage, _ layout: PageLayout, limit: Int) throws -> [UInt8] {
        var draft = try PageDraft(old: old, changes: changes, layout: layout, limit: limit)
        for place in draft.largeValues {
            let bytes: [UInt8] =
                switch changes[place.slot]?[place.column] {
                case .string(let text)?: Array(text.utf8)
                case .data(let data)?: Array(data)
                default: []
                }
            draft.place(try add(bytes, bytes.count % 2 == 0 ? .packed : .raw), at: place)
        }
        return try draft.merge(old: old).withBytes { Array($0) }
    }
}
