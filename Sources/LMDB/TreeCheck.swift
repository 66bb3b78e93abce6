#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Walks the pages of an LMDB 0.9 file without trusting a byte, and without LMDB, which would crash on damage.
///
/// Reads the trees of one commit. While a read transaction of that commit lives, nobody writes over them.
public struct TreeCheck {
    /// How much is read.
    public enum Scope: Sendable {
        /// The main tree and the root page of each other: some pages, for opening.
        case roots
        /// Every page of every tree, each once.
        case everything
    }

    private enum Flags {
        static let branch: UInt16 = 1
        static let leaf: UInt16 = 2
        static let overflow: UInt16 = 4
        static let numbers: UInt16 = 0x20
        static let subPage: UInt16 = 0x40
        static let kinds = branch | leaf | overflow
        /// Of an entry: its value lies on pages of its own; is a tree; has several values.
        static let bigValue: UInt16 = 1
        static let subTree: UInt16 = 2
        static let duplicates: UInt16 = 4
    }

    private static let headerSize = 16
    private static let entryHeaderSize = 8
    /// A record of a tree: flags, depth, counts, and the root at 40.
    private static let treeSize = 48
    private static let rootOffset = 40
    private static let mostLevels = 32
    private static let mostFindings = 100
    private static let none = UInt64.max

    private let file: Int32
    private let meta: MetaPages
    private let scope: Scope
    private let filePages: UInt64
    private var seen: [UInt64]
    private var findings: [String] = []

    /// What is wrong, in words; nil when the commit has been written over, or was while we read: ask again with a newer one.
    ///
    /// - Parameter transaction: a commit that a read transaction keeps; nil for the newest.
    /// O(pages in scope), each read once. Memory: a bit a page.
    public static func findings(
        path: String, transaction: UInt64? = nil, scope: Scope
    ) throws(LMDBError) -> [String]? {
        guard let meta = try MetaPages.commit(transaction, path: path) else { return nil }
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw LMDBError(returnCode: errno, call: .environmentOpen) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw LMDBError(returnCode: errno, call: .environmentOpen) }
        var check = TreeCheck(file: file, meta: meta, scope: scope, byteCount: Int(status.st_size))
        check.walk()
        // Without a reader that keeps them, another process may have used the pages anew.
        if transaction == nil, !check.findings.isEmpty, try MetaPages.commit(nil, path: path) != meta { return nil }
        return check.findings
    }

    private init(file: Int32, meta: MetaPages, scope: Scope, byteCount: Int) {
        self.file = file
        self.meta = meta
        self.scope = scope
        filePages = min(UInt64(byteCount / meta.pageSize), meta.lastPage + 1)
        seen = scope == .everything ? Array(repeating: 0, count: Int(filePages / 64 + 1)) : []
    }

    private mutating func walk() {
        if scope == .everything { tree(meta.freeRoot, "the free list", level: 0, isMain: false) }
        tree(meta.mainRoot, "the main tree", level: 0, isMain: true)
    }

    private mutating func report(_ text: String) {
        if findings.count < Self.mostFindings { findings.append(text) }
    }

    // MARK: Pages

    private mutating func take(_ number: UInt64, count: UInt64, _ owner: String) -> Bool {
        guard number >= 2, number < filePages, count <= filePages - number else {
            report("\(owner) leads to page \(number), outside of the file's \(filePages)")
            return false
        }
        guard scope == .everything else { return true }
        for page in number..<(number + count) {
            let bit: UInt64 = 1 << (page & 63)
            guard seen[Int(page >> 6)] & bit == 0 else {
                report("\(owner) leads to page \(page), which is in use elsewhere")
                return false
            }
            seen[Int(page >> 6)] |= bit
        }
        return true
    }

    private mutating func page(_ number: UInt64, _ owner: String) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: meta.pageSize)
        let got = bytes.withUnsafeMutableBytes {
            pread(file, $0.baseAddress, meta.pageSize, off_t(number) * off_t(meta.pageSize))
        }
        guard got == meta.pageSize else {
            report("page \(number) of \(owner) cannot be read")
            return nil
        }
        guard Self.number(bytes, 0, UInt64.self) == number else {
            report("page \(number) of \(owner) has the number of another")
            return nil
        }
        return bytes
    }

    private static func number<T: FixedWidthInteger>(_ bytes: [UInt8], _ offset: Int, _ type: T.Type) -> T {
        bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) }
    }

    // MARK: Trees

    private mutating func tree(_ root: UInt64, _ owner: String, level: Int, isMain: Bool) {
        guard root != Self.none, findings.count < Self.mostFindings else { return }
        guard level < Self.mostLevels else { return report("\(owner) is deeper than a tree can be") }
        guard take(root, count: 1, owner), let bytes = page(root, owner) else { return }
        let flags = Self.number(bytes, 10, UInt16.self)
        let kind = flags & Flags.kinds
        guard kind == Flags.branch || kind == Flags.leaf else {
            return report("page \(root) of \(owner) is neither a branch nor a leaf")
        }
        if kind == Flags.leaf, flags & Flags.numbers != 0 { return numbers(bytes, 0..<meta.pageSize, root, owner) }
        guard let entries = entries(bytes, 0..<meta.pageSize, root, owner) else { return }
        if scope == .roots, !isMain { return }
        for entry in entries {
            if kind == Flags.branch {
                let low = UInt64(Self.number(bytes, entry, UInt32.self))
                tree(low | UInt64(Self.number(bytes, entry + 4, UInt16.self)) << 32, owner, level: level + 1, isMain: isMain)
            } else {
                value(bytes, entry, root, owner, level: level, isMain: isMain)
            }
        }
    }

    /// The places of a page's entries, whose headers and keys lie inside of it.
    private mutating func entries(_ bytes: [UInt8], _ range: Range<Int>, _ number: UInt64, _ owner: String) -> [Int]? {
        let lower = Int(Self.number(bytes, range.lowerBound + 12, UInt16.self))
        let upper = Int(Self.number(bytes, range.lowerBound + 14, UInt16.self))
        guard lower >= Self.headerSize, lower & 1 == 0, lower <= upper, upper <= range.count else {
            report("page \(number) of \(owner) has impossible bounds")
            return nil
        }
        var entries: [Int] = []
        for offset in stride(from: range.lowerBound + Self.headerSize, to: range.lowerBound + lower, by: 2) {
            let place = range.lowerBound + Int(Self.number(bytes, offset, UInt16.self))
            guard place >= range.lowerBound + upper, place + Self.entryHeaderSize <= range.upperBound,
                place + Self.entryHeaderSize + Int(Self.number(bytes, place + 6, UInt16.self)) <= range.upperBound
            else {
                report("page \(number) of \(owner) has an entry outside of it")
                return nil
            }
            entries.append(place)
        }
        return entries
    }

    /// A page of numbers of one size without headers.
    private mutating func numbers(_ bytes: [UInt8], _ range: Range<Int>, _ number: UInt64, _ owner: String) {
        let size = Int(Self.number(bytes, range.lowerBound + 8, UInt16.self))
        let count = (Int(Self.number(bytes, range.lowerBound + 12, UInt16.self)) - Self.headerSize) / 2
        guard count >= 0, Self.headerSize + count * size <= range.count else {
            return report("page \(number) of \(owner) has more numbers than room")
        }
    }

    private mutating func value(
        _ bytes: [UInt8], _ entry: Int, _ number: UInt64, _ owner: String, level: Int, isMain: Bool
    ) {
        let size = Int(Self.number(bytes, entry, UInt32.self))
        let flags = Self.number(bytes, entry + 4, UInt16.self)
        let keyCount = Int(Self.number(bytes, entry + 6, UInt16.self))
        let start = entry + Self.entryHeaderSize + keyCount
        let isBig = flags & Flags.bigValue != 0
        guard start + (isBig ? 8 : size) <= bytes.count else {
            return report("page \(number) of \(owner) has a value outside of it")
        }
        if isBig {
            bigValue(Self.number(bytes, start, UInt64.self), size: size, owner)
        } else if flags & Flags.subTree != 0 {
            guard size >= Self.treeSize else { return report("page \(number) of \(owner) has a tree record that is too short") }
            let name = isMain ? String(decoding: bytes[(start - keyCount)..<start], as: UTF8.self) : owner
            tree(Self.number(bytes, start + Self.rootOffset, UInt64.self), name, level: isMain ? 0 : level + 1, isMain: false)
        } else if flags & Flags.duplicates != 0 {
            guard size >= Self.headerSize else { return report("page \(number) of \(owner) has values that are too short") }
            let range = start..<(start + size)
            let isNumbers = Self.number(bytes, start + 10, UInt16.self) & Flags.numbers != 0
            if isNumbers { numbers(bytes, range, number, owner) } else { _ = entries(bytes, range, number, owner) }
        }
    }

    private mutating func bigValue(_ first: UInt64, size: Int, _ owner: String) {
        let count = UInt64((Self.headerSize + size - 1) / meta.pageSize + 1)
        guard take(first, count: count, owner), let bytes = page(first, owner) else { return }
        let flags = Self.number(bytes, 10, UInt16.self)
        guard flags & Flags.kinds == Flags.overflow, Self.number(bytes, 12, UInt32.self) == count else {
            return report("page \(first) of \(owner) should hold a value of \(size) bytes, but does not")
        }
    }
}
