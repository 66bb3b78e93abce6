import StoreInterface

/// The pages that a context read last, by entity and number: reading neighbours, or one object's properties in turn, finds
/// the page once. Direct-mapped; emptied when the context moves on, so that it keeps no snapshot alive.
struct PageCache {
    private struct Entry {
        var entity: Int
        var number: UInt64
        var page: any StorePage
    }

    private static let size = 64
    /// Empty until the first page is read.
    private var entries: [Entry?] = []
    private var isEmpty = true

    @inline(__always)
    private static func index(_ entity: Int, _ number: UInt64) -> Int {
        Int(truncatingIfNeeded: number &+ UInt64(truncatingIfNeeded: entity) &* 29) & (size - 1)
    }

    mutating func page(_ entity: Int, _ number: UInt64, in base: any StoreSnapshot) throws -> (any StorePage)? {
        let index = Self.index(entity, number)
        if entries.isEmpty { entries = Array(repeating: nil, count: Self.size) }
        if let entry = entries[index], entry.number == number, entry.entity == entity { return entry.page }
        guard let page = try base.page(entity, number) else { return nil }
        entries[index] = Entry(entity: entity, number: number, page: page)
        isEmpty = false
        return page
    }

    mutating func removeAll() {
        guard !isEmpty else { return }
        for index in entries.indices { entries[index] = nil }
        isEmpty = true
    }
}
