/// Corrects the checksums of damaged bytes, so that tests and fuzzing reach the code behind the checksum.
@_spi(Fuzzing) public enum ChecksumRepair {
    /// Corrects the checksum and the byte count of a page. Bytes shorter than a header stay as they are.
    public static func page(_ bytes: inout [UInt8], place: PageLocation? = nil) {
        guard bytes.count >= PageFormat.headerSize, bytes.count <= PageFormat.maximumByteCount else { return }
        bytes.withUnsafeMutableBytes { page in
            page.storeBytes(of: UInt32(page.count).littleEndian, toByteOffset: PageFormat.byteCountOffset, as: UInt32.self)
            let hash = PageHash.page(UnsafeRawBufferPointer(page), place)
            page.storeBytes(of: hash.littleEndian, toByteOffset: PageFormat.checksumOffset, as: UInt64.self)
        }
    }

    /// Corrects the checksum of a dictionary, its second word. Bytes shorter than a header stay as they are.
    public static func dictionary(_ bytes: inout [UInt8]) {
        guard bytes.count >= DictionaryRecord.headerSize else { return }
        bytes.withUnsafeMutableBytes { bytes in
            let hash = DictionaryRecord.checksum(UnsafeRawBufferPointer(bytes))
            bytes.storeBytes(of: hash.littleEndian, toByteOffset: 8, as: UInt64.self)
        }
    }

    /// Corrects the checksum of a chunk, its second eight bytes. Bytes shorter than a header stay as they are.
    public static func chunk(_ bytes: inout [UInt8], key: UInt64) {
        guard bytes.count >= LargeChunk.headerByteCount else { return }
        bytes.withUnsafeMutableBytes { bytes in
            let hash = LargeChunk.checksum(UnsafeRawBufferPointer(bytes), key: key)
            bytes.storeBytes(of: hash.littleEndian, toByteOffset: LargeChunk.checksumOffset, as: UInt64.self)
        }
    }

    /// Corrects the checksum of a change set, its last four bytes.
    public static func changeSet(_ bytes: inout [UInt8]) {
        guard bytes.count >= 4 else { return }
        bytes.withUnsafeMutableBytes { bytes in
            let body = UnsafeRawBufferPointer(rebasing: bytes.dropLast(4))
            bytes.storeBytes(of: ChangeSetCodec.checksum(body).littleEndian, toByteOffset: body.count, as: UInt32.self)
        }
    }
}
