internal import Platform

/// A reader of an LMDB 0.9 file with damaged pages. It reads the trees of the newest commit as far as whole pages lead to them. It trusts no
/// bytes, and does not use LMDB, which would crash on damage.
///
/// A page that two places lead to is left out: one of them is wrong, and nothing tells which.
package final class TreeSalvage {
    /// The faults of one tree, or of a part of it.
    package struct Faults: Sendable {
        /// The number of places that cannot be read.
        package fileprivate(set) var count = 0
        /// The first fault, in words.
        package fileprivate(set) var first: String?

        package var isEmpty: Bool { count == 0 }

        fileprivate mutating func add(_ text: String) {
            count += 1
            first = first ?? text
        }
    }

    /// A tree that the main tree names.
    package struct Tree: Sendable {
        /// The number of entries that its record gives. It may be damaged.
        package var entries: UInt64 { record.entries }
        fileprivate var record: MetaPages.TreeRecord
    }

    /// The named trees.
    package private(set) var trees: [String: Tree] = [:]
    /// The faults of the main tree. Trees that it names may be missing.
    package private(set) var mainFaults = Faults()
    /// The number of the commit that is read.
    package var transactionNumber: UInt64 { meta.lastTransaction }

    private enum Pass { case counting, reading }

    private static let mostLevels = 32
    private let file: OpenFile
    private let path: String
    private let isOlder: Bool
    /// Returns the kind of a tree with this name; nil if only its record tells. The record may be damaged.
    private let kind: (String) -> Database.Kind?
    private let meta: MetaPages
    private let pageCount: UInt64
    private var pass = Pass.counting
    /// One bit per page that a place leads to, and one bit per page that several places lead to.
    private var seen: [UInt64]
    private var seenTwice: [UInt64]
    private var faults = Faults()

    /// Opens a file, and finds the pages that its trees consist of. O(pages), each read once. Call ``close()`` at the end.
    /// Returns nil if the meta pages cannot be read.
    ///
    /// - Parameter kind: Returns the kind of a tree with this name; nil if only its record tells. The record may be damaged.
    package convenience init?(path: String, kind: @escaping (String) -> Database.Kind? = { _ in nil }) throws(LMDBError) {
        guard let meta = try MetaPages.commit(nil, path: path) else { return nil }
        try self.init(path, meta, isOlder: false, kind: kind)
        var named: [MetaPages.TreeRecord] = []
        walk(meta.mainRoot, level: 0) { entry in
            if let record = record(entry)?.1 { named.append(record) }
        }
        for record in named { read(record) { _, _ in } }
        pass = .reading
        faults = Faults()
        walk(meta.mainRoot, level: 0) { entry in
            if let (name, record) = record(entry) { trees[name] = Tree(record: record) }
        }
        mainFaults = faults
    }

    /// Opens a file to read one tree of the commit before the newest one, whose pages LMDB keeps until the next commit. A page that two places
    /// lead to is read once. O(pages of the main tree). Call ``close()`` at the end. Returns nil if the meta pages cannot be read, or if the
    /// newest commit made the file longer.
    package convenience init?(olderCommitOf path: String) throws(LMDBError) {
        guard let meta = try MetaPages.older(path: path), let newest = try MetaPages.commit(nil, path: path),
            meta.lastPage == newest.lastPage
        else { return nil }
        try self.init(path, meta, isOlder: true) { _ in nil }
        walk(meta.mainRoot, level: 0) { entry in
            if let (name, record) = record(entry) { trees[name] = Tree(record: record) }
        }
        mainFaults = faults
    }

    private init(
        _ path: String, _ meta: MetaPages, isOlder: Bool, kind: @escaping (String) -> Database.Kind?
    ) throws(LMDBError) {
        (self.path, self.meta, self.isOlder, self.kind) = (path, meta, isOlder, kind)
        let file = try LMDBError.opening { () throws(SystemError) in try OpenFile(path, access: .read) }
        self.file = file
        let size = try LMDBError.opening { () throws(SystemError) in try file.status().byteCount }
        pageCount = min(UInt64(size / meta.pageSize), meta.lastPage + 1)
        seen = Array(repeating: 0, count: Int(pageCount / 64 + 1))
        seenTwice = seen
    }

    package func close() { file.close() }

    /// Returns whether no commit has followed since the file was opened. Otherwise, pages may have been overwritten.
    package func isCurrent() throws(LMDBError) -> Bool {
        try (isOlder ? MetaPages.older(path: path) : MetaPages.commit(nil, path: path)) == meta
    }

    /// Calls `body` with each entry of a named tree that can be read, in the order of the file. An entry with several values is one call per
    /// value. The bytes are valid inside `body`.
    /// - Returns: The faults of the tree.
    package func forEachEntry(
        of tree: Tree, _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Void
    ) throws -> Faults {
        faults = Faults()
        var failure: (any Error)?
        read(tree.record) { key, value in
            guard failure == nil else { return }
            do { try body(key, value) } catch { failure = error }
        }
        if let failure { throw failure }
        return faults
    }

    // MARK: Pages

    /// Counts a use of pages. Returns whether they are to be read.
    private func take(_ first: UInt64, count: UInt64) -> Bool {
        guard first >= 2, first < pageCount, count <= pageCount - first else {
            faults.add("page \(first) is outside of the file")
            return false
        }
        var isUsable = true
        for page in first..<(first + count) {
            let (place, bit) = (Int(page >> 6), UInt64(1) << (page & 63))
            if pass == .reading {
                if seenTwice[place] & bit != 0 { isUsable = false }
            } else if seen[place] & bit != 0 {
                seenTwice[place] |= bit
                isUsable = false
            } else {
                seen[place] |= bit
            }
        }
        if !isUsable { faults.add("page \(first) is in use elsewhere") }
        return isUsable
    }

    private func bytes(_ number: UInt64, count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = bytes.withUnsafeMutableBytes { try? file.read(into: $0, at: Int(number) * meta.pageSize) }
        guard got == count, Self.number(bytes, at: 0, as: UInt64.self) == number else {
            faults.add(got == count ? "page \(number) has the number of another" : "page \(number) cannot be read")
            return nil
        }
        return bytes
    }

    private static func number<T: FixedWidthInteger>(_ bytes: [UInt8], at offset: Int, as type: T.Type) -> T {
        bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) }
    }

    /// Returns the number of the page that an entry of a branch leads to.
    private static func child(_ branch: [UInt8], at place: Int) -> UInt64 {
        UInt64(number(branch, at: place, as: UInt32.self)) | UInt64(number(branch, at: place + 4, as: UInt16.self)) << 32
    }

    // MARK: Trees

    /// An entry of a leaf, whose key is inside the page.
    private struct Entry {
        var page: [UInt8]
        var flags: UInt16
        var key: Range<Int>
        /// The size that the entry gives for its value.
        var size: Int

        func value(_ size: Int) -> Range<Int>? {
            key.upperBound + size <= page.count ? key.upperBound..<(key.upperBound + size) : nil
        }
    }

    private typealias Layout = LeafPage.Layout

    /// Returns the places of a page's entries that are inside the page.
    private func places(_ bytes: [UInt8], _ number: UInt64) -> [Int] {
        let lower = Int(Self.number(bytes, at: Layout.lowerOffset, as: UInt16.self))
        guard lower >= Layout.headerSize, lower & 1 == 0, lower <= bytes.count else {
            faults.add("page \(number) has impossible bounds")
            return []
        }
        return stride(from: Layout.headerSize, to: lower, by: 2).compactMap { offset in
            let place = Int(Self.number(bytes, at: offset, as: UInt16.self))
            guard place >= lower, place + Layout.entryHeaderSize <= bytes.count else {
                faults.add("page \(number) has an entry outside of it")
                return nil
            }
            return place
        }
    }

    private func walk(_ root: UInt64, level: Int, _ body: (Entry) -> Void) {
        guard root != .max else { return }
        guard level < Self.mostLevels else { return faults.add("page \(root) is deeper than a tree can be") }
        guard take(root, count: 1), let page = bytes(root, count: meta.pageSize) else { return }
        switch Self.number(page, at: Layout.flagsOffset, as: UInt16.self) {
        case 1:
            for place in places(page, root) {
                walk(Self.child(page, at: place), level: level + 1, body)
            }
        case Layout.leaf:
            for place in places(page, root) {
                let start = place + Layout.entryHeaderSize
                let end = start + Int(Self.number(page, at: place + Layout.keySizeOffset, as: UInt16.self))
                guard end <= page.count, end - start > 0 else {
                    faults.add("page \(root) has an entry outside of it")
                    continue
                }
                body(
                    Entry(
                        page: page, flags: Self.number(page, at: place + Layout.entryFlagsOffset, as: UInt16.self),
                        key: start..<end, size: Int(Self.number(page, at: place, as: UInt32.self))))
            }
        default: faults.add("page \(root) is neither a branch nor a leaf")
        }
    }

    /// Returns the name and the record of a tree, from an entry of the main tree.
    private func record(_ entry: Entry) -> (String, MetaPages.TreeRecord)? {
        let size = MetaPages.TreeRecord.byteCount
        guard entry.flags == 2, entry.size == size, let value = entry.value(size) else { return nil }
        let name = String(decoding: entry.page[entry.key], as: UTF8.self)
        var record = MetaPages.TreeRecord(entry.page, at: value.lowerBound)
        if let kind = kind(name) { record.flags = UInt16(kind.flags) }
        return (name, record)
    }

    /// Calls `body` with each key and value of a named tree.
    private func read(
        _ record: MetaPages.TreeRecord, _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Void
    ) {
        guard let kind = Database.Kind(flags: UInt32(record.flags)) else { return faults.add("it is of an unknown kind") }
        let hasNumberKeys = kind == .integers || kind == .integersToIntegers
        let hasNumberValues = kind == .integersToIntegers || kind == .bytesToIntegers
        walk(record.root, level: 0) { entry in
            guard !hasNumberKeys || entry.key.count == 8 else { return faults.add("it has a key that is no number") }
            if hasNumberValues { values(entry, body) } else { value(entry, body) }
        }
    }

    /// Reads the only value of an entry.
    private func value(_ entry: Entry, _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Void) {
        entry.page.withUnsafeBytes { page in
            let key = UnsafeRawBufferPointer(rebasing: page[entry.key])
            switch entry.flags {
            case 0:
                guard let value = entry.value(entry.size) else { return faults.add("it has a value outside of its page") }
                body(key, UnsafeRawBufferPointer(rebasing: page[value]))
            case 1:
                guard let place = entry.value(8) else { return faults.add("it has a value outside of its page") }
                let first = page.loadUnaligned(fromByteOffset: place.lowerBound, as: UInt64.self)
                let count = UInt64((Layout.headerSize + entry.size - 1) / meta.pageSize + 1)
                guard take(first, count: count), let value = bytes(first, count: Layout.headerSize + entry.size) else { return }
                guard Self.number(value, at: Layout.flagsOffset, as: UInt16.self) == 4 else {
                    return faults.add("page \(first) has no large value")
                }
                value.withUnsafeBytes { body(key, UnsafeRawBufferPointer(rebasing: $0.dropFirst(Layout.headerSize))) }
            default: faults.add("it has an entry of another kind")
            }
        }
    }

    /// Reads the values of an entry, which are numbers: one beside the key, a page of numbers in the entry, or a tree of such pages.
    private func values(_ entry: Entry, _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Void) {
        entry.page.withUnsafeBytes { page in
            let key = UnsafeRawBufferPointer(rebasing: page[entry.key])
            switch entry.flags {
            case 0:
                guard entry.size == 8, let value = entry.value(8) else { return faults.add("it has a value that is no number") }
                body(key, UnsafeRawBufferPointer(rebasing: page[value]))
            case 4:
                guard entry.size >= Layout.headerSize, let value = entry.value(entry.size) else {
                    return faults.add("it has values outside of its page")
                }
                numbers(UnsafeRawBufferPointer(rebasing: page[value])) { body(key, $0) }
            case 6:
                guard entry.size == MetaPages.TreeRecord.byteCount, let value = entry.value(entry.size) else {
                    return faults.add("it has values outside of its page")
                }
                numberTree(MetaPages.TreeRecord(page, at: value.lowerBound).root, level: 0) { body(key, $0) }
            default: faults.add("it has an entry of another kind")
            }
        }
    }

    /// Reads a page of numbers of eight bytes, which have no headers.
    private func numbers(_ page: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) {
        func number(_ offset: Int) -> Int { Int(page.loadUnaligned(fromByteOffset: offset, as: UInt16.self)) }
        let count = (number(Layout.lowerOffset) - Layout.headerSize) / 2
        guard number(Layout.flagsOffset) & 0x20 != 0, number(8) == 8, count > 0, Layout.headerSize + count * 8 <= page.count
        else {
            return faults.add("it has values that are no numbers")
        }
        for position in 0..<count {
            let start = Layout.headerSize + position * 8
            body(UnsafeRawBufferPointer(rebasing: page[start..<(start + 8)]))
        }
    }

    private func numberTree(_ root: UInt64, level: Int, _ body: (UnsafeRawBufferPointer) -> Void) {
        guard level < Self.mostLevels else { return faults.add("page \(root) is deeper than a tree can be") }
        guard take(root, count: 1), let page = bytes(root, count: meta.pageSize) else { return }
        switch Self.number(page, at: Layout.flagsOffset, as: UInt16.self) {
        case 1:
            for place in places(page, root) {
                numberTree(Self.child(page, at: place), level: level + 1, body)
            }
        case 0x22: page.withUnsafeBytes { numbers($0, body) }
        default: faults.add("page \(root) has no values")
        }
    }
}
