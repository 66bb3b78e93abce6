import StoreModel

/// A table of elements by page number, found with two look-ups. Page numbers are dense from 1 on.
///
/// Numbers below 2^28 are in chunks of 64, allocated when one of their numbers is first used. Greater numbers are in a dictionary.
/// The pointers are safe because the table owns their memory and frees it in `deinit`. Pointers avoid reference counting when an
/// element is read.
final class NumberTable<Element> {
    private typealias Chunk = UnsafeMutablePointer<Element?>
    private static var chunkBits: UInt64 { 6 }
    private static var chunkSize: Int { 1 << Int(chunkBits) }
    private static var denseEnd: UInt64 { 1 << 28 }

    // Pointers to memory that the table owns; see above.
    @exclusivity(unchecked) private var chunks: UnsafeMutablePointer<Chunk?>?
    @exclusivity(unchecked) private var chunkCount: UInt64 = 0
    @exclusivity(unchecked) private var others: [PageNumber: Element] = [:]

    deinit {
        guard let chunks else { return }
        for case let chunk? in UnsafeBufferPointer(start: chunks, count: Int(chunkCount)) {
            chunk.deinitialize(count: Self.chunkSize)
            chunk.deallocate()
        }
        chunks.deallocate()
    }

    subscript(page: PageNumber) -> Element? {
        @inline(__always) get {
            let number = page.rawValue
            let chunk = number >> Self.chunkBits
            if chunk < chunkCount, let chunks {
                return chunks[Int(truncatingIfNeeded: chunk)]?[Int(truncatingIfNeeded: number) & (Self.chunkSize - 1)]
            }
            return others.isEmpty ? nil : others[page]
        }
        set {
            let number = page.rawValue
            guard number < Self.denseEnd else {
                others[page] = newValue
                return
            }
            guard newValue != nil || number >> Self.chunkBits < chunkCount else { return }
            chunk(Int(number >> Self.chunkBits))[Int(number) & (Self.chunkSize - 1)] = newValue
        }
    }

    /// Returns a chunk, after allocating it if necessary.
    private func chunk(_ index: Int) -> Chunk {
        if index >= Int(chunkCount) { grow(to: max(index + 1, 2 * Int(chunkCount), 4)) }
        if let found = chunks?[index] { return found }
        let made = Chunk.allocate(capacity: Self.chunkSize)
        made.initialize(repeating: nil, count: Self.chunkSize)
        chunks?[index] = made
        return made
    }

    private func grow(to count: Int) {
        let grown = UnsafeMutablePointer<Chunk?>.allocate(capacity: count)
        grown.initialize(repeating: nil, count: count)
        if let chunks {
            grown.update(from: chunks, count: Int(chunkCount))
            chunks.deallocate()
        }
        chunks = grown
        chunkCount = UInt64(count)
    }

    /// Calls `body` with each element. O(numbers near those in use).
    func forEach(_ body: (Element) -> Void) {
        for case let chunk? in UnsafeBufferPointer(start: chunks, count: Int(chunkCount)) {
            for position in 0..<Self.chunkSize {
                if let element = chunk[position] { body(element) }
            }
        }
        for element in others.values { body(element) }
    }
}
