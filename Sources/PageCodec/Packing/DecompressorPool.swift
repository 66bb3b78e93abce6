internal import Platform

/// zstd's working memory for reading (about 160 KB each), kept for the next page: making it costs as much as a page.
enum DecompressorPool {
    /// `@unchecked Sendable` is right because the pool, or the one call that took it from there, owns it alone.
    final class Decompressor: @unchecked Sendable {
        // Right because it is made in `init` and freed in `deinit`.
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
