internal import CZstd

/// The functions of zstd that this module calls. Their return codes become typed errors.
enum ZstdCall {
    // MARK: Compressing

    static func makeCompressor() throws(PageError) -> OpaquePointer {
        guard let made = ZSTD_createCCtx() else { throw outOfMemory("ZSTD_createCCtx") }
        return made
    }

    static func free(compressor: OpaquePointer) { ZSTD_freeCCtx(compressor) }

    /// Sets a level from 1 to 22. Frames contain the size of their content, but neither a checksum nor the number of a
    /// dictionary, which the page contains.
    static func configure(_ compressor: OpaquePointer, level: Int) throws(PageError) {
        try check(ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, Int32(clamping: level)), "ZSTD_CCtx_setParameter")
        try check(ZSTD_CCtx_setParameter(compressor, ZSTD_c_dictIDFlag, 0), "ZSTD_CCtx_setParameter")
    }

    static func makeCompression(_ dictionary: UnsafeRawBufferPointer, level: Int) throws(PageError) -> OpaquePointer {
        guard let made = ZSTD_createCDict(dictionary.baseAddress, dictionary.count, Int32(clamping: level)) else {
            throw PageError(field: "dictionary", reason: "cannot be used (ZSTD_createCDict)")
        }
        return made
    }

    static func free(compression: OpaquePointer) { ZSTD_freeCDict(compression) }

    static func use(_ compression: OpaquePointer, in compressor: OpaquePointer) throws(PageError) {
        try check(ZSTD_CCtx_refCDict(compressor, compression), "ZSTD_CCtx_refCDict")
    }

    static func bound(_ byteCount: Int) -> Int { ZSTD_compressBound(byteCount) }

    /// Compresses bytes. Precondition: the target has room for ``bound(_:)``.
    /// - Returns: The number of bytes written.
    static func compress(
        _ compressor: OpaquePointer, _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
    ) throws(PageError) -> Int {
        try check(
            ZSTD_compress2(compressor, target.baseAddress, target.count, source.baseAddress, source.count), "ZSTD_compress2")
    }

    // MARK: Decompressing

    static func makeDecompressor() throws(PageError) -> OpaquePointer {
        guard let made = ZSTD_createDCtx() else { throw outOfMemory("ZSTD_createDCtx") }
        return made
    }

    static func free(decompressor: OpaquePointer) { ZSTD_freeDCtx(decompressor) }

    static func makeDecompression(_ dictionary: UnsafeRawBufferPointer) throws(PageError) -> OpaquePointer {
        guard let made = ZSTD_createDDict(dictionary.baseAddress, dictionary.count) else {
            throw PageError(field: "dictionary", reason: "cannot be used (ZSTD_createDDict)")
        }
        return made
    }

    static func free(decompression: OpaquePointer) { ZSTD_freeDDict(decompression) }

    /// Returns the content size that the frame states. Returns nil if it states none, or if the bytes are not a frame.
    static func contentSize(_ frame: UnsafeRawBufferPointer) -> UInt64? {
        let size = ZSTD_getFrameContentSize(frame.baseAddress, frame.count)
        // The two highest numbers mean "unknown" and "no frame".
        return size >= .max - 1 ? nil : size
    }

    /// Decompresses a frame.
    /// - Returns: The number of bytes written, at most the size of the target.
    static func decompress(
        _ decompressor: OpaquePointer, _ frame: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer,
        dictionary: OpaquePointer?
    ) throws(PageError) -> Int {
        try check(
            ZSTD_decompress_usingDDict(
                decompressor, target.baseAddress, target.count, frame.baseAddress, frame.count, dictionary),
            "ZSTD_decompress_usingDDict")
    }

    // MARK: Training

    /// Trains a dictionary.
    /// - Parameter samples: The concatenated samples, whose sizes are in `sizes`.
    /// - Returns: The byte count of the dictionary, or nil if the samples are too few or too similar.
    static func train(_ samples: [UInt8], _ sizes: [Int], into target: inout [UInt8]) -> Int? {
        let size = ZDICT_trainFromBuffer(&target, target.count, samples, sizes, UInt32(clamping: sizes.count))
        return ZDICT_isError(size) == 0 ? size : nil
    }

    /// Adapts the tables of a trained dictionary, which are for a low level, to the level that pages are packed with.
    /// - Returns: The byte count, or nil if this fails.
    static func finish(
        _ content: ArraySlice<UInt8>, samples: [UInt8], sizes: [Int], level: Int, into target: inout [UInt8]
    ) -> Int? {
        let parameters = ZDICT_params_t(compressionLevel: Int32(clamping: level), notificationLevel: 0, dictID: 0)
        let size = content.withUnsafeBytes { content in
            ZDICT_finalizeDictionary(
                &target, target.count, content.baseAddress, content.count, samples, sizes, UInt32(clamping: sizes.count),
                parameters)
        }
        return ZDICT_isError(size) == 0 ? size : nil
    }

    /// Returns the number of bytes of a trained dictionary before its content, or nil for other bytes.
    static func headerSize(_ dictionary: ArraySlice<UInt8>) -> Int? {
        let size = dictionary.withUnsafeBytes { ZDICT_getDictHeaderSize($0.baseAddress, $0.count) }
        return ZDICT_isError(size) == 0 ? size : nil
    }

    // MARK: Errors

    @discardableResult
    private static func check(_ code: Int, _ call: String) throws(PageError) -> Int {
        guard ZSTD_isError(code) == 0 else {
            let reason = String(cString: ZSTD_getErrorName(code))
            throw PageError(offset: PageFormat.headerSize, field: "packed bytes", reason: "\(reason) (\(call))")
        }
        return code
    }

    private static func outOfMemory(_ call: String) -> PageError {
        PageError(field: "packed page", reason: "needs more memory than there is (\(call))")
    }
}
