/// The numbers of look-ups in a store's cache that found a page, and of those that did not.
public struct CacheUse: Sendable, Hashable {
    /// The number of look-ups that found a page.
    public var hits: Int
    /// The number of look-ups that found none.
    public var misses: Int

    /// Creates numbers of look-ups.
    public init(hits: Int = 0, misses: Int = 0) {
        self.hits = hits
        self.misses = misses
    }
}
