import LMDB
import PageCodec
import StoreInterface

/// What a packed page was before, in memory of our own; it goes with the last reference.
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

/// Why a page is unpacked, which decides whether the cache keeps it.
enum PageUse {
    /// It is likely to be read again: others may have to go for it.
    case reading
    /// One of many that are walked over: kept as long as there is room, so that a walk does not push out what is read.
    case scanning
    /// It is about to be replaced.
    case writing
    /// It is checked: unpacked anew, whatever is known.
    case verifying
}

extension LMDBStore {
    /// A packed page as it was before, from the cache or by unpacking it. Precondition: the bytes are valid in `reader`.
    /// - Throws: `StoreError` `.damaged`.
    func unpacked(
        _ bytes: UnsafeRawBufferPointer, _ entity: Int, _ number: UInt64, for use: PageUse, in reader: some ByteReading
    ) throws -> UnpackedPage {
        do {
            return try tails.withWhole(bytes, entity, number, in: reader) { bytes in
                let packed = try PackedPage(bytes, place: entities[entity].layout.place(number))
                let identity = PageIdentity(packed, entity: entity, number: number)
                if use != .verifying, let known = unpackedPages.page(identity, for: use) { return known }
                let dictionary = try dictionaries.dictionary(entity, packed.dictionaryNumber, in: reader)
                let made = try UnpackedPage(packed, dictionary: dictionary)
                if use == .reading || use == .scanning { unpackedPages.insert(made, identity, for: use) }
                return made
            }
        } catch let error as PageError {
            throw StoreError.damagedPage(self, entity, number, error)
        }
    }

    /// Calls `body` with the page that bytes from a table of pages are, raw or packed; it is valid inside only. What every reader
    /// of such bytes goes through. A raw page costs one look at its flags.
    ///
    /// - Throws: `StoreError` `.damaged` for any `PageError`, also one of `body`.
    @inline(__always)
    func withPage<R>(
        _ bytes: UnsafeRawBufferPointer, _ entity: Int, _ number: UInt64, for use: PageUse, check: ObjectPage.Check = .header,
        in reader: some PageReading, _ body: (ObjectPage) throws -> R
    ) throws -> R {
        let held = PackedPage.isPacked(bytes) ? try unpacked(bytes, entity, number, for: use, in: reader) : nil
        do {
            return try withExtendedLifetime(held) {
                let page = try ObjectPage(
                    held?.bytes ?? bytes, layout: entities[entity].layout, number: number, check: check,
                    large: LargeValues(reader, entity: entity))
                return try body(page)
            }
        } catch let error as PageError {
            throw StoreError.damagedPage(self, entity, number, error)
        }
    }
}
