internal import Platform

/// The content of the two meta pages of an LMDB 0.9 file. It is read without trusting the bytes and without opening the file
/// with LMDB.
package struct MetaPages: Sendable, Hashable {
    /// The result of reading the meta pages of a file.
    package enum Finding: Sendable, Hashable {
        /// The file has no bytes. Opening it creates a new file.
        case empty
        /// The meta pages are sound. The associated value is the page of the newest commit.
        case sound(MetaPages)
        /// The file is not a file of LMDB. The associated value is the reason.
        case notLMDB(String)
        /// The file belongs to another release line of LMDB. The number is the file's format version.
        case otherVersion(UInt32)
        /// The file is damaged. The associated value is the reason.
        case damaged(String)
    }

    /// The page size in bytes, a power of two from 512 to 65,536.
    package var pageSize: Int
    /// The number of the last page in use, from 0.
    package var lastPage: UInt64
    /// The number of the commit that wrote the meta page.
    package var lastTransaction: UInt64
    var freeTree: TreeRecord
    var mainTree: TreeRecord
    var freeRoot: UInt64 { freeTree.root }
    var mainRoot: UInt64 { mainTree.root }

    /// LMDB's record of a tree, with which a walk through the tree is compared. It is in a meta page, or in the main tree.
    struct TreeRecord: Sendable, Hashable {
        static let byteCount = 48

        var flags: UInt16
        /// The number of levels.
        var depth: UInt16
        var branchPages: UInt64
        var leafPages: UInt64
        /// The number of pages of values that have pages of their own.
        var overflowPages: UInt64
        var entries: UInt64
        var root: UInt64

        /// The number of pages, as far as they can be added.
        var pages: UInt64 {
            [branchPages, leafPages, overflowPages].reduce(0) { $0.addingReportingOverflow($1).overflow ? .max : $0 + $1 }
        }

        /// Reads the record at an offset of a page.
        init(_ bytes: [UInt8], at offset: Int) { self = bytes.withUnsafeBytes { TreeRecord($0, at: offset) } }

        init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
            func number<T: FixedWidthInteger>(_ offset: Int, _ type: T.Type) -> T {
                bytes.loadUnaligned(fromByteOffset: offset, as: T.self)
            }
            (flags, depth) = (number(offset + 4, UInt16.self), number(offset + 6, UInt16.self))
            (branchPages, leafPages) = (number(offset + 8, UInt64.self), number(offset + 16, UInt64.self))
            overflowPages = number(offset + 24, UInt64.self)
            (entries, root) = (number(offset + 32, UInt64.self), number(offset + 40, UInt64.self))
        }
    }

    /// The expected size of the file in bytes, up to the last page.
    package var expectedByteCount: UInt64 { (lastPage &+ 1) &* UInt64(pageSize) }

    // Offsets on a page, for a 64-bit build. The format of LMDB 0.9 writes numbers in the machine's byte order.
    private static let flagsOffset = 10
    private static let magicOffset = 16
    private static let versionOffset = 20
    private static let mapSizeOffset = 32
    private static let pageSizeOffset = 40
    private static let freeTreeOffset = 40
    private static let mainTreeOffset = 88
    private static let lastPageOffset = 136
    private static let transactionOffset = 144
    private static let count = 152
    private static let metaFlag: UInt16 = 8
    private static let magic: UInt32 = 0xBEEF_C0DE
    private static let formatVersion: UInt32 = 1

    /// Reads the meta pages of a file.
    /// - Throws: A system error if the file cannot be opened or read.
    package static func read(path: String) throws(LMDBError) -> Finding {
        let file = try LMDBError.opening { () throws(SystemError) in try OpenFile(path, access: .read) }
        defer { file.close() }
        var last: [MetaPages] = []
        while true {
            let pages: [MetaPages]
            switch try both(file) {
            case .failure(let problem): return problem.finding
            case .success(let found): pages = found
            }
            let numbers = pages.map(\.lastTransaction)
            // Each commit writes the other meta page: even commits the first, odd commits the second.
            let isSound =
                numbers == [0, 0] || (numbers[0] % 2 == 0 && (numbers[0] &+ 1 == numbers[1] || numbers[1] &+ 1 == numbers[0]))
            let (newest, older) = numbers[1] > numbers[0] ? (pages[1], pages[0]) : (pages[0], pages[1])
            // LMDB never shortens a file.
            let isGrown = newest.lastPage >= older.lastPage
            if isSound, isGrown { return .sound(newest) }
            // A process may have committed between the two reads.
            guard pages != last else {
                if isSound {
                    return .damaged(
                        "its meta page gives \(newest.lastPage) as the last page, although it was \(older.lastPage) before")
                }
                return .damaged("its meta pages are of commits \(numbers[0]) and \(numbers[1]), of which none follows the other")
            }
            last = pages
        }
    }

    private static func both(_ file: OpenFile) throws(LMDBError) -> Result<[MetaPages], Problem> {
        guard let first = try bytes(file, at: 0) else {
            return .failure(Problem(finding: try isEmpty(file) ? .empty : .notLMDB("it is shorter than a header")))
        }
        let one: MetaPages
        switch page(first) {
        case .failure(let problem): return .failure(problem)
        case .success(let found): one = found
        }
        guard let second = try bytes(file, at: one.pageSize) else {
            return .failure(Problem(finding: .damaged("it ends before its second meta page")))
        }
        guard case .success(let two) = page(second), two.pageSize == one.pageSize else {
            return .failure(Problem(finding: .damaged("its second meta page is not one")))
        }
        return .success([one, two])
    }

    /// Returns the meta page of a commit, or of the newest commit for nil. Returns nil if the page has been overwritten.
    static func commit(_ transaction: UInt64?, path: String) throws(LMDBError) -> MetaPages? {
        let file = try LMDBError.opening { () throws(SystemError) in try OpenFile(path, access: .read) }
        defer { file.close() }
        guard let first = try bytes(file, at: 0), case .success(let one) = page(first),
            let second = try bytes(file, at: one.pageSize), case .success(let two) = page(second)
        else { return nil }
        guard let transaction else { return two.lastTransaction > one.lastTransaction ? two : one }
        return [one, two].first { $0.lastTransaction == transaction }
    }

    /// Returns the meta page of the commit before the newest one. Returns nil if a meta page cannot be read.
    static func older(path: String) throws(LMDBError) -> MetaPages? {
        let file = try LMDBError.opening { () throws(SystemError) in try OpenFile(path, access: .read) }
        defer { file.close() }
        guard case .success(let pages) = try both(file) else { return nil }
        return pages.min { $0.lastTransaction < $1.lastTransaction }
    }

    /// Returns the number of named trees of the newest commit. Returns nil if a meta page cannot be read.
    package static func treeCount(path: String) throws(LMDBError) -> UInt64? {
        try commit(nil, path: path)?.mainTree.entries
    }

    /// Returns whether one of a file's meta pages belongs to a commit.
    package static func hasCommit(_ transaction: UInt64, path: String) throws(LMDBError) -> Bool {
        try commit(transaction, path: path) != nil
    }

    /// Returns the larger map size of the two meta pages of an open file, at least up to its last page.
    static func mapSize(_ file: OpenFile, pageSize: Int) throws(LMDBError) -> Int {
        var size = 0
        for offset in [0, pageSize] {
            guard let found = try bytes(file, at: offset), case .success(let meta) = page(found) else { continue }
            let own = found.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: mapSizeOffset, as: UInt64.self) }
            size = max(size, Int(clamping: own), Int(clamping: meta.expectedByteCount))
        }
        return size
    }

    private struct Problem: Error { var finding: Finding }

    private static func page(_ bytes: [UInt8]) -> Result<MetaPages, Problem> {
        bytes.withUnsafeBytes { bytes in
            func number<T: FixedWidthInteger>(_ offset: Int, _ type: T.Type) -> T {
                bytes.loadUnaligned(fromByteOffset: offset, as: T.self)
            }
            guard number(magicOffset, UInt32.self) == magic, number(flagsOffset, UInt16.self) & metaFlag != 0 else {
                let isSQLite = bytes.starts(with: "SQLite format 3\u{0}".utf8)
                let reason =
                    isSQLite ? "it is a file of SQLite, which the store .sqlite opens" : "its first bytes are not those of LMDB"
                return .failure(Problem(finding: .notLMDB(reason)))
            }
            let version = number(versionOffset, UInt32.self)
            guard version == formatVersion else { return .failure(Problem(finding: .otherVersion(version))) }
            let pageSize = Int(number(pageSizeOffset, UInt32.self))
            guard pageSize >= 512, pageSize <= 65536, pageSize & (pageSize - 1) == 0 else {
                return .failure(Problem(finding: .damaged("its meta page gives a page size of \(pageSize)")))
            }
            let lastPage = number(lastPageOffset, UInt64.self)
            guard lastPage >= 1, lastPage < UInt64(Int64.max) / UInt64(pageSize) - 1 else {
                return .failure(Problem(finding: .damaged("its meta page gives \(lastPage) as the last page")))
            }
            // No file reaches this number, and LMDB would overflow its counter.
            guard number(transactionOffset, UInt64.self) < 1 << 62 else {
                return .failure(Problem(finding: .damaged("its meta page gives an impossible number of commits")))
            }
            let (free, main) = (TreeRecord(bytes, at: freeTreeOffset), TreeRecord(bytes, at: mainTreeOffset))
            for root in [free.root, main.root] {
                guard root == .max || (root >= 2 && root <= lastPage) else {
                    return .failure(Problem(finding: .damaged("its meta page points to page \(root) of \(lastPage)")))
                }
            }
            return .success(
                MetaPages(
                    pageSize: pageSize, lastPage: lastPage, lastTransaction: number(transactionOffset, UInt64.self),
                    freeTree: free, mainTree: main))
        }
    }

    private static func bytes(_ file: OpenFile, at offset: Int) throws(LMDBError) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let outcome = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(SystemError) in try file.read(into: buffer, at: offset) }
        }
        let got = try LMDBError.opening { () throws(SystemError) in try outcome.get() }
        return got == count ? bytes : nil
    }

    private static func isEmpty(_ file: OpenFile) throws(LMDBError) -> Bool {
        try LMDBError.opening { () throws(SystemError) in try file.status() }.byteCount == 0
    }
}

extension LMDBError {
    /// Runs calls of the system that read a file before it is opened as LMDB's.
    static func opening<R>(_ body: () throws(SystemError) -> R) throws(LMDBError) -> R {
        do throws(SystemError) { return try body() } catch {
            throw LMDBError(returnCode: error.number, call: .environmentOpen)
        }
    }
}
