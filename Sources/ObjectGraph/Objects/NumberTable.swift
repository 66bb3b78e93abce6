/// Elements by small dense numbers, as pages have: found by two array look-ups, without hashing. O(1).
///
/// Costs 16 bytes a number near those in use. Numbers beyond what any store leases, which only an id made up by hand has, lie in a
/// dictionary, so that they cost no more than themselves.
struct NumberTable<Element> {
    private typealias Chunk = ContiguousArray<Element?>
    private static var chunkBits: UInt64 { 8 }
    private static var chunkSize: Int { 1 << Int(chunkBits) }
    private static var denseEnd: UInt64 { 1 << 28 }

    private var chunks: ContiguousArray<Chunk> = []
    private var others: [UInt64: Element] = [:]

    subscript(number: UInt64) -> Element? {
        @inline(__always) get {
            let chunk = number >> Self.chunkBits
            if chunk < UInt64(truncatingIfNeeded: chunks.count) {
                let index = Int(truncatingIfNeeded: chunk)
                return chunks[index].isEmpty ? nil : chunks[index][Int(truncatingIfNeeded: number) & (Self.chunkSize - 1)]
            }
            return others.isEmpty ? nil : others[number]
        }
        set {
            guard number < Self.denseEnd else {
                others[number] = newValue
                return
            }
            let chunk = Int(number >> Self.chunkBits)
            if chunk >= chunks.count {
                guard newValue != nil else { return }
                chunks.append(contentsOf: repeatElement([], count: chunk + 1 - chunks.count))
            }
            if chunks[chunk].isEmpty { chunks[chunk] = Chunk(repeating: nil, count: Self.chunkSize) }
            chunks[chunk][Int(number) & (Self.chunkSize - 1)] = newValue
        }
    }

    /// O(numbers near those in use).
    func forEach(_ body: (Element) -> Void) {
        for chunk in chunks {
            for case let element? in chunk { body(element) }
        }
        for element in others.values { body(element) }
    }
}
