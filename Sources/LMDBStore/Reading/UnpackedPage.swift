import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// The unpacked bytes of a packed page, in memory that is freed with the last reference.
final class UnpackedPage: Sendable {
    // Right because it is allocated and filled in `init`, immutable from then on, and freed in `deinit`.
    nonisolated(unsafe) let bytes: UnsafeRawBufferPointer

    init(_ packed: PackedPage, dictionary: PageDictionary?) throws(PageError) {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: packed.unpackedByteCount, alignment: 8)
        do throws(PageError) { try packed.unpack(into: room, dictionary: dictionary) } catch {
            room.deallocate()
            throw error
        }
        bytes = UnsafeRawBufferPointer(room)
    }

    deinit { bytes.deallocate() }
}

/// The purpose of unpacking a page, which decides whether the cache keeps it.
enum PageUse {
    /// The page is likely to be read again. Other pages may be evicted for it.
    case reading
    /// The page is part of a walk over many pages. It is kept only if there is room, so that a walk does not evict pages in
    /// use.
    case scanning
    /// The page is about to be replaced.
    case writing
    /// The page is being checked. It is always unpacked again.
    case verifying
}

extension LMDBStore {
    /// Returns an unpacked page, from the cache or by unpacking it. Precondition: the bytes are valid in `reader`.
    /// - Throws: `StoreError` `.damaged`.
    func unpacked(
        _ bytes: UnsafeRawBufferPointer, entity: EntityIndex, number: PageNumber, for use: PageUse, in reader: some ByteReading
    ) throws -> UnpackedPage {
        do {
            return try pageOverflow.withWhole(bytes, entity: entity, number: number, in: reader) { bytes in
                let packed = try PackedPage(bytes, place: entities[entity].layout.place(number))
                let identity = PageIdentity(packed, entity: entity, number: number)
                if use != .verifying, let known = unpackedPages.page(identity, for: use) { return known }
                let dictionary = try dictionaries.dictionary(entity, packed.dictionaryNumber, in: reader)
                let made = try UnpackedPage(packed, dictionary: dictionary)
                if use == .reading || use == .scanning { unpackedPages.insert(made, identity, for: use) }
                return made
            }
        } catch let error as PageError {
            throw StoreError.damagedPage(self, entity: entity, number: number, error: error)
        }
    }

    /// Calls `body` with the raw or packed page in bytes of a page table. The page is valid only inside `body`. All readers
    /// of such bytes use this method. For a raw page, the overhead is one read of its flags.
    ///
    /// - Throws: `StoreError` `.damaged` for any `PageError`, also one of `body`.
    @inline(__always)
    func withPage<R>(
        _ bytes: UnsafeRawBufferPointer, entity: EntityIndex, number: PageNumber, for use: PageUse,
        check: ObjectPage.Check = .header,
        in reader: some PageReading, _ body: (ObjectPage) throws -> R
    ) throws -> R {
        let held = PackedPage.isPacked(bytes) ? try unpacked(bytes, entity: entity, number: number, for: use, in: reader) : nil
        do {
            return try withExtendedLifetime(held) {
                let page = try ObjectPage(
                    held?.bytes ?? bytes, layout: entities[entity].layout, number: number, check: check,
                    large: LargeValues(reader, entity: entity))
                return try body(page)
            }
        } catch let error as PageError {
            throw StoreError.damagedPage(self, entity: entity, number: number, error: error)
        }
    }
}
