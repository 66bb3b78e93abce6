internal import Platform

/// A pool of zstd's working memory for reading, about 160 KB each. Creating it costs as much as reading a page.
enum DecompressorPool {
    /// `@unchecked Sendable` is right because one owner uses it: the pool, or the one call that took it from the pool.
    final class Decompressor: @unchecked Sendable {
        // Right because `init` creates it and `deinit` frees it.
        let pointer: OpaquePointer

        init() throws(PageError) { pointer = try ZstdCall.makeDecompressor() }

        deinit { ZstdCall.free(decompressor: pointer) }
    }

    private static let maximumIdle = 8
    private static let idle = Mutex<[Decompressor]>([])

    static func take() throws(PageError) -> Decompressor {
        if let kept = idle.withLock({ $0.popLast() }) { return kept }
        return try Decompressor()
    }

    static func give(_ decompressor: Decompressor) {
        idle.withLock { if $0.count < maximumIdle { $0.append(decompressor) } }
    }
}
