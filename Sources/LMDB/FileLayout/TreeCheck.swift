internal import Platform

/// A check of the pages of an LMDB 0.9 file. It trusts no bytes, and does not use LMDB, which would crash on damage.
///
/// It reads the trees of one commit. While a read transaction of that commit exists, no writer overwrites them.
package struct TreeCheck {
    /// The part of the file to read.
    package enum Scope: Sendable {
        /// The pages that are checked at opening: the main tree, the list of free pages, and one whole tree. Of each other tree, up to 32
        /// pages are read, and of a long list its newest part.
        case roots
        /// Every page of every tree, once, and the order of the keys.
        case everything
    }

    private enum Flags {
        static let branch: UInt16 = 1
        static let leaf = LeafPage.Layout.leaf
        static let overflow: UInt16 = 4
        static let numbers: UInt16 = 0x20
        static let kinds = branch | leaf | overflow
        /// Flags of an entry: its value is on pages of its own, is a tree, or has several values.
        static let bigValue: UInt16 = 1
        static let subTree: UInt16 = 2
        static let duplicates: UInt16 = 4
    }

    /// The allowed content of a tree. LMDB uses the flags of a tree in one place and those of pages and entries in another.
    /// It crashes where they disagree.
    private struct Rules {
        var isMain = false
        var isFreeList = false
        /// Whether a key has several values, which are numbers of 8 bytes.
        var hasNumberValues = false
        var hasNumberKeys = false
        /// Whether the tree contains the values of one key.
        var isValues = false
        /// Whether the whole tree is checked in every scope.
        var isReadAtOpening = false
        /// Whether all pages are read in the scope of opening, because the tree has few.
        var isSmall = false
        /// The number of levels of the tree's record; nil if pages are not compared with it.
        var depth: Int?

        /// Creates the rules from the flags of a tree's record. Returns nil for a kind that Strata never creates.
        init?(flags: UInt16) {
            switch flags {
            case 0: break
            case 0x08: hasNumberKeys = true
            case 0x34: hasNumberValues = true
            case 0x3C: (hasNumberKeys, hasNumberValues) = (true, true)
            default: return nil
            }
        }

        private init() {}

        static let main: Rules = {
            var rules = Rules()
            rules.isMain = true
            return rules
        }()
        static let freeList: Rules = {
            var rules = Rules()
            (rules.isFreeList, rules.hasNumberKeys) = (true, true)
            return rules
        }()
        static let values: Rules = {
            var rules = Rules()
            rules.isValues = true
            return rules
        }()
        /// The rules for checking only roots, because other programs' files have other kinds of trees.
        static let unknown = Rules()
    }

    private static let headerSize = LeafPage.Layout.headerSize
    private static let entryHeaderSize = LeafPage.Layout.entryHeaderSize
    private static let treeSize = MetaPages.TreeRecord.byteCount
    private static let mostLevels = 32
    private static let mostFindings = 100
    private static let none = UInt64.max
    /// The number of pages of the free list that opening reads. They name about 130,000 free pages.
    private static let freeListPagesAtOpening = 256
    /// The number of pages of each named tree that opening reads. Smaller trees are read whole.
    private static let treePagesAtOpening = 32
    /// The number of pages of a file up to which its unexpected end is a reason to read all of it.
    private static let pagesToReadAll = 1 << 14
    /// The number of pages of a file up to which a check of roots has one bit per page: two megabytes.
    private static let pagesWithBits: UInt64 = 1 << 24

    private struct Counts {
        var entries: UInt64 = 0
        /// The number of levels.
        var depth = 0
        var branchPages: UInt64 = 0
        var leafPages: UInt64 = 0
        var overflowPages: UInt64 = 0
        /// Whether every leaf was read, so that the entries and the pages of values are known.
        var hasAllLeaves = true
        /// Whether every branch was read, so that the number of leaves is known.
        var hasAllBranches = true
    }

    /// A tree that the main tree names.
    private struct NamedTree {
        var name: String
        var record: MetaPages.TreeRecord
    }

    private let file: OpenFile
    private let meta: MetaPages
    private let scope: Scope
    private let readAtOpening: String?
    private let filePages: UInt64
    /// One bit per page; empty in a check of the roots of a very large file.
    private var seen: [UInt64]
    /// The pages visited in such a check. Damage may lead to the same pages again and again.
    private var visited: Set<UInt64> = []
    /// The entries and levels of the current tree.
    private var counts = Counts()
    /// The order of the current tree's keys; nil if it is not checked.
    private var order: KeyOrder?
    private var namedTrees: [NamedTree] = []
    /// The number of pages of the current named tree that may still be read.
    private var treePagesLeft = Int.max
    /// The number of pages of the free list that may still be read.
    private var freeListPagesLeft = Int.max
    /// Whether a part of the free list was left out.
    private var isFreeListCut = false
    /// The newest commit that the free list names.
    private var newestFree: UInt64?
    /// Whether the main tree has the tree that is checked whole in every scope. It then is the file of a store.
    private var isStore = false
    private var findings: [String] = []
    private var freeLists: [[UInt8]] = []
    private let isWanted: (_ pages: UInt64, _ total: UInt64) -> Bool
    private var pagesRead: UInt64 = 0
    /// Whether the caller has ended the check.
    private var isStopped = false

    /// Returns the faults, in words. Returns nil if the commit was overwritten before or during the check. In that case, call
    /// again with a newer commit.
    ///
    /// - Parameters:
    ///   - transaction: A commit that a read transaction keeps; nil for the newest.
    ///   - readAtOpening: The name of a tree that is checked whole in every scope.
    ///   - isWritten: Whether another process may be writing the file. It then may have pages that no commit has yet.
    ///   - isWanted: Called during the check with the pages that are read, and the pages of the file. If it returns false, the check ends,
    ///     and its result says nothing.
    ///
    /// O(pages in scope), each read once. Memory: one bit per page.
    package static func findings(
        path: String, transaction: UInt64? = nil, scope: Scope, readAtOpening: String? = nil, isWritten: Bool = false,
        isWanted: @escaping (_ pages: UInt64, _ total: UInt64) -> Bool = { _, _ in true }
    ) throws(LMDBError) -> [String]? {
        guard let meta = try MetaPages.commit(transaction, path: path) else { return nil }
        let file = try LMDBError.opening { () throws(SystemError) in try OpenFile(path, access: .read) }
        defer { file.close() }
        let size = try LMDBError.opening { () throws(SystemError) in try file.status().byteCount }
        // A process that died may have left pages behind the last page. Otherwise the number of the last page is wrong, and only pages
        // in use show it.
        let pages = UInt64(size / meta.pageSize)
        let scope = !isWritten && pages > meta.lastPage + 1 && pages <= pagesToReadAll ? Scope.everything : scope
        var check = TreeCheck(
            file: file, meta: meta, scope: scope, readAtOpening: readAtOpening, byteCount: size, isWanted: isWanted)
        check.walk()
        // Without a reader that keeps the pages, another process may have reused them.
        if transaction == nil, !check.findings.isEmpty, try MetaPages.commit(nil, path: path) != meta { return nil }
        return check.findings
    }

    private init(
        file: OpenFile, meta: MetaPages, scope: Scope, readAtOpening: String?, byteCount: Int,
        isWanted: @escaping (_ pages: UInt64, _ total: UInt64) -> Bool
    ) {
        self.readAtOpening = readAtOpening
        self.isWanted = isWanted
        self.file = file
        self.meta = meta
        self.scope = scope
        filePages = min(UInt64(byteCount / meta.pageSize), meta.lastPage + 1)
        let hasBits = scope == .everything || filePages <= Self.pagesWithBits
        seen = hasBits ? Array(repeating: 0, count: Int(filePages / 64 + 1)) : []
    }

    private mutating func walk() {
        if scope == .everything, meta.mainTree.flags == 0 { order = KeyOrder(.bytes) }
        tree(meta.mainRoot, owner: "the main tree", level: 0, rules: .main)
        if scope == .everything || isStore { compare(meta.mainTree, "the main tree") }
        if isStore, meta.mainTree.flags != 0 { report("the main tree is of a kind that no store has") }
        // Runs after the main tree, when it is known whether the file is a store.
        for tree in namedTrees { check(tree) }
        // LMDB keeps flags of the whole file there too.
        if isStore, meta.freeTree.flags & 0x3E != 8 { report("the free list is of a kind that it never has") }
        let isShort = filePages <= meta.lastPage
        if scope == .roots, !isShort { freeListPagesLeft = Self.freeListPagesAtOpening }
        counts = Counts()
        order = nil
        tree(meta.freeRoot, owner: "the free list", level: 0, rules: .freeList)
        if scope == .everything || isStore { checkFreeTree() }
        if isShort { checkMissing() }
        // Runs after all trees, when the pages in use are known.
        for list in freeLists { checkFree(list) }
    }

    /// Compares what was counted in a tree with its record in the meta page, which LMDB uses without looking at the tree.
    private mutating func compare(_ record: MetaPages.TreeRecord, _ owner: String, isWhole: Bool = true) {
        guard findings.isEmpty else { return }
        guard !isWhole || record.entries == counts.entries else {
            return report("\(owner) has \(counts.entries) entries, but the meta page says \(record.entries)")
        }
        guard Int(record.depth) == counts.depth else {
            return report("\(owner) has \(counts.depth) levels, but the meta page says \(record.depth)")
        }
    }

    /// Checks that the free list belongs to the newest commit. LMDB would write over the pages that an earlier list names.
    private mutating func checkFreeTree() {
        compare(meta.freeTree, "the free list", isWhole: !isFreeListCut)
        // Each commit but the first replaces pages, and lists them under its number.
        guard findings.isEmpty, isStore, meta.lastTransaction > 1, newestFree != meta.lastTransaction else { return }
        report("the free list is of commit \(newestFree ?? 0), but the newest is \(meta.lastTransaction)")
    }

    /// Checks a list of free pages, which consists of a count and page numbers. A page in use must not be free.
    private mutating func checkFree(_ list: [UInt8]) {
        let owner = "the free list"
        guard list.count >= 8, case let count = Self.number(list, at: 0, as: UInt64.self), count <= UInt64(list.count / 8 - 1)
        else {
            return report("\(owner) has a list that is longer than its value")
        }
        var last = UInt64.max
        for offset in stride(from: 8, to: 8 + Int(count) * 8, by: 8) {
            let page = Self.number(list, at: offset, as: UInt64.self)
            guard page >= 2, page <= meta.lastPage, page < last else {
                return report("\(owner) has a list with page \(page) of \(meta.lastPage), or out of order")
            }
            last = page
            // Free pages at the end may be missing from the file.
            if page < filePages, !take(page, count: 1, owner) { return }
        }
    }

    /// Checks the missing end of the file. LMDB does not write pages that one transaction allocated and freed. A sound file
    /// may therefore end before its last page, if the missing pages are free.
    private mutating func checkMissing() {
        // More missing pages than this are never a tail of free pages, and would take long to check.
        guard findings.isEmpty, meta.lastPage - filePages < 1 << 16 else { return reportShort() }
        var missing = Set(filePages...meta.lastPage)
        for list in freeLists {
            for offset in stride(from: 8, through: list.count - 8, by: 8) {
                missing.remove(Self.number(list, at: offset, as: UInt64.self))
            }
        }
        if !missing.isEmpty { reportShort() }
    }

    private mutating func reportShort() {
        guard findings.isEmpty else { return }
        report("it ends with page \(filePages), before page \(meta.lastPage), which is in use")
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
        guard !seen.isEmpty else {
            if visited.insert(number).inserted { return true }
            report("\(owner) leads to page \(number), which is in use elsewhere")
            return false
        }
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
        pagesRead += 1
        if pagesRead & 63 == 0, !isWanted(pagesRead, filePages) { isStopped = true }
        var bytes = [UInt8](repeating: 0, count: meta.pageSize)
        let got = bytes.withUnsafeMutableBytes { try? file.read(into: $0, at: Int(number) * meta.pageSize) }
        guard got == meta.pageSize else {
            report("page \(number) of \(owner) cannot be read")
            return nil
        }
        guard Self.number(bytes, at: 0, as: UInt64.self) == number else {
            report("page \(number) of \(owner) has the number of another")
            return nil
        }
        return bytes
    }

    // Not generic: a program that is not optimized would look types up for each number, and spend most of the check on it.
    private static func number(_ bytes: [UInt8], at offset: Int, as _: UInt16.Type) -> UInt16 {
        UInt16(bytes[offset]) | UInt16(bytes[offset + 1]) << 8
    }

    private static func number(_ bytes: [UInt8], at offset: Int, as _: UInt32.Type) -> UInt32 {
        UInt32(number(bytes, at: offset, as: UInt16.self)) | UInt32(number(bytes, at: offset + 2, as: UInt16.self)) << 16
    }

    private static func number(_ bytes: [UInt8], at offset: Int, as _: UInt64.Type) -> UInt64 {
        UInt64(number(bytes, at: offset, as: UInt32.self)) | UInt64(number(bytes, at: offset + 4, as: UInt32.self)) << 32
    }

    // MARK: Trees

    private mutating func tree(_ root: UInt64, owner: String, level: Int, rules: Rules) {
        guard root != Self.none, findings.count < Self.mostFindings, !isStopped else { return }
        guard level < Self.mostLevels else { return report("\(owner) is deeper than a tree can be") }
        if rules.isFreeList, !mayReadFreeList(pages: 1) { return }
        guard take(root, count: 1, owner), let bytes = page(root, owner) else { return }
        let flags = Self.number(bytes, at: 10, as: UInt16.self)
        let kind = flags & Flags.kinds
        counts.depth = max(counts.depth, level + 1)
        guard kind == Flags.branch || kind == Flags.leaf else {
            return report("page \(root) of \(owner) is neither a branch nor a leaf")
        }
        let isNumbers = flags & Flags.numbers != 0
        // All other flags are used by LMDB only while it writes. A commit would leave out a page that has them.
        guard scope == .roots || flags == kind | flags & Flags.numbers else {
            return report("page \(root) of \(owner) has flags that no page in a file has")
        }
        if let depth = rules.depth, (level + 1 == depth) != (kind == Flags.leaf) {
            return report("\(owner) has a page at level \(level + 1) that does not fit the \(depth) levels of its record")
        }
        if kind == Flags.branch { counts.branchPages += 1 } else { counts.leafPages += 1 }
        if kind == Flags.leaf, isNumbers { numbers(bytes, range: 0..<meta.pageSize, number: root, owner: owner) }
        if scope == .everything || rules.depth != nil, isNumbers != (rules.isValues && kind == Flags.leaf) {
            return report("page \(root) of \(owner) is of another kind than its tree")
        }
        if isNumbers { return }
        guard let entries = entries(bytes, range: 0..<meta.pageSize, number: root, owner: owner) else { return }
        // Of a file of another program, roots only.
        if scope == .roots, !rules.isMain, !rules.isFreeList, rules.depth == nil { return }
        // LMDB descends between two entries. Its free list may temporarily have fewer.
        guard entries.count >= (kind == Flags.branch && !rules.isFreeList ? 2 : 1) else {
            return report("page \(root) of \(owner) has too few entries")
        }
        // The newest part of the free list comes first, because a long list is not read to its end.
        let places = Array(entries.enumerated())
        for (position, entry) in rules.isFreeList ? places.reversed() : places {
            if kind == Flags.branch {
                // LMDB never reads the key of the first entry.
                if position > 0, !checkKey(bytes, .branch, entry: entry, page: root, owner: owner, rules: rules) { return }
                let low = UInt64(Self.number(bytes, at: entry, as: UInt32.self))
                let child = low | UInt64(Self.number(bytes, at: entry + 4, as: UInt16.self)) << 32
                let isFirst = position == 0
                if mayReadChild(isFirst: isFirst, level: level + 1, rules: rules) {
                    tree(child, owner: owner, level: level + 1, rules: rules)
                } else if !skip(child, owner: owner, level: level + 1, rules: rules) {
                    return
                }
            } else {
                guard checkKey(bytes, .leaf, entry: entry, page: root, owner: owner, rules: rules) else { return }
                value(bytes, entry: entry, number: root, owner: owner, level: level, rules: rules)
            }
        }
    }

    /// Returns whether a child of a branch is to be read, and counts it. At opening, that is the first leaf of each branch, and all leaves
    /// of a small tree.
    private mutating func mayReadChild(isFirst: Bool, level: Int, rules: Rules) -> Bool {
        guard scope == .roots, !rules.isReadAtOpening, let depth = rules.depth else { return true }
        guard isFirst || rules.isSmall || level + 1 < depth else { return false }
        return mayReadTree()
    }

    /// Returns whether another page of a named tree may be read, and counts it.
    private mutating func mayReadTree() -> Bool {
        treePagesLeft -= 1
        return treePagesLeft >= 0
    }

    /// Counts a child that is not read as in use.
    private mutating func skip(_ child: UInt64, owner: String, level: Int, rules: Rules) -> Bool {
        if level + 1 == rules.depth { counts.leafPages += 1 } else { counts.hasAllBranches = false }
        counts.hasAllLeaves = false
        return take(child, count: 1, owner)
    }

    /// Returns whether so many pages of the free list may be read, and counts them.
    private mutating func mayReadFreeList(pages: Int) -> Bool {
        freeListPagesLeft -= pages
        if freeListPagesLeft < 0 { isFreeListCut = true }
        return !isFreeListCut
    }

    private mutating func checkKey(
        _ bytes: [UInt8], _ place: KeyOrder.Place, entry: Int, page: UInt64, owner: String, rules: Rules
    ) -> Bool {
        let count = Int(Self.number(bytes, at: entry + 6, as: UInt16.self))
        guard rules.hasNumberKeys || rules.isValues ? count == 8 : (count > 0 && count <= 511) else {
            report("page \(page) of \(owner) has a key of \(count) bytes")
            return false
        }
        checkOrder(bytes, place, at: entry + Self.entryHeaderSize, count: count, page: page, owner: owner)
        return true
    }

    /// Reports the first key of a tree that is out of order: LMDB would not find some keys.
    private mutating func checkOrder(
        _ bytes: [UInt8], _ place: KeyOrder.Place, at start: Int, count: Int, page: UInt64, owner: String
    ) {
        guard order?.accepts(place, of: bytes, at: start..<(start + count)) == false else { return }
        order = nil
        report("page \(page) of \(owner) has a key out of order")
    }

    /// Returns the offsets of a page's entries, whose headers and keys are inside the page.
    private mutating func entries(_ bytes: [UInt8], range: Range<Int>, number: UInt64, owner: String) -> [Int]? {
        let lower = Int(Self.number(bytes, at: range.lowerBound + 12, as: UInt16.self))
        let upper = Int(Self.number(bytes, at: range.lowerBound + 14, as: UInt16.self))
        guard lower >= Self.headerSize, lower & 1 == 0, lower <= upper, upper <= range.count else {
            report("page \(number) of \(owner) has impossible bounds")
            return nil
        }
        var entries: [Int] = []
        for offset in stride(from: range.lowerBound + Self.headerSize, to: range.lowerBound + lower, by: 2) {
            let place = range.lowerBound + Int(Self.number(bytes, at: offset, as: UInt16.self))
            guard place >= range.lowerBound + upper, place + Self.entryHeaderSize <= range.upperBound,
                place + Self.entryHeaderSize + Int(Self.number(bytes, at: place + 6, as: UInt16.self)) <= range.upperBound
            else {
                report("page \(number) of \(owner) has an entry outside of it")
                return nil
            }
            entries.append(place)
        }
        return entries
    }

    /// Checks a page of numbers of one size without headers.
    private mutating func numbers(_ bytes: [UInt8], range: Range<Int>, number: UInt64, owner: String) {
        let size = Int(Self.number(bytes, at: range.lowerBound + 8, as: UInt16.self))
        let count = (Int(Self.number(bytes, at: range.lowerBound + 12, as: UInt16.self)) - Self.headerSize) / 2
        guard count > 0, size == 8, Self.headerSize + count * size <= range.count else {
            return report("page \(number) of \(owner) has more numbers than room")
        }
        counts.entries &+= UInt64(count)
        guard order != nil else { return }
        for position in 0..<count {
            let start = range.lowerBound + Self.headerSize + position * size
            checkOrder(bytes, .leaf, at: start, count: size, page: number, owner: owner)
        }
    }

    private mutating func value(
        _ bytes: [UInt8], entry: Int, number: UInt64, owner: String, level: Int, rules: Rules
    ) {
        let size = Int(Self.number(bytes, at: entry, as: UInt32.self))
        let flags = Self.number(bytes, at: entry + 4, as: UInt16.self)
        let keyCount = Int(Self.number(bytes, at: entry + 6, as: UInt16.self))
        let start = entry + Self.entryHeaderSize + keyCount
        guard start + (flags & Flags.bigValue != 0 ? 8 : size) <= bytes.count else {
            return report("page \(number) of \(owner) has a value outside of it")
        }
        if flags & Flags.subTree != 0, size != Self.treeSize {
            return report("page \(number) of \(owner) has a record of a tree that is too short")
        }
        // If an entry has several values, each value counts.
        if flags & Flags.duplicates == 0 { counts.entries &+= 1 }
        if rules.isFreeList {
            let commit = Self.number(bytes, at: start - keyCount, as: UInt64.self)
            newestFree = max(commit, newestFree ?? 0)
        }
        switch flags {
        case 0:
            if rules.hasNumberValues, size != 8 { return report("page \(number) of \(owner) has a value that is no number") }
            if rules.isFreeList { freeLists.append(Array(bytes[start..<(start + size)])) }
        case Flags.bigValue where !rules.hasNumberValues:
            bigValue(Self.number(bytes, at: start, as: UInt64.self), size: size, owner: owner, rules: rules)
        case Flags.subTree where rules.isMain:
            let name = String(decoding: bytes[(start - keyCount)..<start], as: UTF8.self)
            if name == readAtOpening { isStore = true }
            namedTrees.append(NamedTree(name: name, record: MetaPages.TreeRecord(bytes, at: start)))
        case Flags.subTree | Flags.duplicates where rules.hasNumberValues:
            // The record also contains the width of the tree's numbers.
            guard Self.number(bytes, at: start, as: UInt32.self) == 8 else {
                return report("page \(number) of \(owner) has values of a wrong width")
            }
            values(MetaPages.TreeRecord(bytes, at: start), owner: owner, level: level + 1)
        case Flags.duplicates where rules.hasNumberValues:
            guard size >= Self.headerSize, Self.number(bytes, at: start + 10, as: UInt16.self) & Flags.numbers != 0 else {
                return report("page \(number) of \(owner) has values that are too short")
            }
            let outer = order
            order = outer.map { _ in KeyOrder(.numbers) }
            numbers(bytes, range: start..<(start + size), number: number, owner: owner)
            order = outer
        default: report("page \(number) of \(owner) has an entry of another kind than its tree")
        }
    }

    /// Checks the tree with the values of one key. Opening does not read it.
    private mutating func values(_ record: MetaPages.TreeRecord, owner: String, level: Int) {
        guard scope == .everything else {
            // The file gives the number. A sum that wraps differs from the record of the table.
            counts.entries &+= record.entries
            _ = take(record.root, count: 1, owner)
            return
        }
        let (outer, outerOrder, known) = (counts, order, findings.count)
        counts = Counts()
        order = outerOrder.map { _ in KeyOrder(.numbers) }
        tree(record.root, owner: owner, level: level, rules: .values)
        order = outerOrder
        if findings.count == known, counts.entries != record.entries {
            report("\(owner) has \(counts.entries) entries, but its record says \(record.entries)")
        }
        let entries = counts.entries
        counts = outer
        counts.entries &+= entries
    }

    // MARK: Named trees

    /// Checks a tree that the main tree names, and compares it with its record. LMDB uses the record without looking at the tree.
    private mutating func check(_ named: NamedTree) {
        let (name, record) = (named.name, named.record)
        counts = Counts()
        order = nil
        treePagesLeft = Self.treePagesAtOpening
        guard scope == .everything || isStore else {
            return tree(record.root, owner: name, level: 0, rules: Rules(flags: record.flags) ?? .unknown)
        }
        guard var rules = Rules(flags: record.flags) else { return report("\(name) is a tree of a kind that no store has") }
        rules.isReadAtOpening = name == readAtOpening
        rules.depth = Int(record.depth)
        rules.isSmall = record.pages <= UInt64(Self.treePagesAtOpening)
        // Other programs may order keys in their own way.
        if scope == .everything, isStore { order = KeyOrder(rules.hasNumberKeys ? .numbers : .bytes) }
        let known = findings.count
        _ = mayReadTree()
        tree(record.root, owner: name, level: 0, rules: rules)
        if findings.count == known { compareNamed(record, name) }
    }

    /// Compares the counts of a named tree with its record, as far as the tree was read.
    private mutating func compareNamed(_ record: MetaPages.TreeRecord, _ name: String) {
        let isEmpty = record.root == Self.none
        if isEmpty ? record.depth != 0 : record.entries == 0 {
            return report("\(name) has \(record.entries) entries on \(record.depth) levels, but \(isEmpty ? "no" : "a") root")
        }
        if counts.hasAllLeaves, counts.entries != record.entries {
            return report("\(name) has \(counts.entries) entries, but its record says \(record.entries)")
        }
        if counts.hasAllBranches, (counts.branchPages, counts.leafPages) != (record.branchPages, record.leafPages) {
            return report(
                "\(name) has \(counts.branchPages) branches and \(counts.leafPages) leaves, but its record says "
                    + "\(record.branchPages) and \(record.leafPages)")
        }
        if counts.hasAllLeaves, counts.overflowPages != record.overflowPages {
            report("\(name) has \(counts.overflowPages) pages of large values, but its record says \(record.overflowPages)")
        }
    }

    /// Checks a value on pages of its own. If a value shrinks within a transaction, LMDB keeps the longer run of pages. The
    /// header of the first page therefore determines the number of pages, not the value's size.
    private mutating func bigValue(_ first: UInt64, size: Int, owner: String, rules: Rules) {
        let needed = UInt64((Self.headerSize + size - 1) / meta.pageSize + 1)
        if scope == .roots, rules.depth != nil, !rules.isReadAtOpening, !(rules.isSmall && mayReadTree()) {
            counts.hasAllLeaves = false
            _ = take(first, count: needed, owner)
            return
        }
        guard take(first, count: 1, owner), let bytes = page(first, owner) else { return }
        let flags = Self.number(bytes, at: 10, as: UInt16.self)
        let count = UInt64(Self.number(bytes, at: 12, as: UInt32.self))
        guard scope == .roots ? flags & Flags.kinds == Flags.overflow : flags == Flags.overflow, count >= needed else {
            return report("page \(first) of \(owner) should hold a value of \(size) bytes, but does not")
        }
        if count > 1, !take(first + 1, count: count - 1, owner) { return }
        counts.overflowPages &+= count
        guard rules.isFreeList, mayReadFreeList(pages: Int(clamping: count)) else { return }
        var list = [UInt8](repeating: 0, count: size)
        let got = list.withUnsafeMutableBytes {
            try? file.read(into: $0, at: Int(first) * meta.pageSize + Self.headerSize)
        }
        guard got == size else { return report("page \(first) of \(owner) cannot be read") }
        freeLists.append(list)
    }
}
