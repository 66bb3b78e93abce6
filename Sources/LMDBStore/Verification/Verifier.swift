import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// A check of one snapshot, which gathers the faults.
struct Verifier {
    static let maximumFindings = RelationCheck.maximumFindings

    let snapshot: LMDBSnapshot
    private(set) var findings: [VerificationFinding] = []
    /// The objects of each page, per entity. 16 bytes per page.
    private var presence: [[PageNumber: UInt64]] = []
    /// The number of packed pages whose rest is in `tails`.
    private var splitPages = 0
    private let cancellation: Cancellation

    init(_ snapshot: LMDBSnapshot, _ cancellation: Cancellation) {
        self.snapshot = snapshot
        self.cancellation = cancellation
    }

    private var store: LMDBStore { snapshot.store }
    private var schema: StoreSchema { snapshot.schema }
    private var isFull: Bool { findings.count >= Self.maximumFindings }

    mutating func note(_ finding: String) {
        if findings.count < Self.maximumFindings { findings.append(VerificationFinding(finding)) }
    }

    mutating func run() throws {
        store.dictionaries.forget()
        try checkMeta()
        let total = try schema.entityIndices.reduce(0) { try $0 + pageCount($1) }
        var before = 0
        for entity in schema.entityIndices {
            try checkPages(entity, Pages(progress: cancellation.part(0.25...0.5), before: before, total: total))
            try checkLeases(entity)
            before += presence[entity].count
        }
        before = 0
        for entity in schema.entityIndices where !isFull {
            try checkObjects(entity, Pages(progress: cancellation.part(0.5...0.75), before: before, total: total))
            before += presence[entity].count
        }
        if !isFull { for problem in try RelationCheck.problems(snapshot, cancellation.part(0.75...0.9)) { note(problem) } }
        for link in schema.linkIndices where !isFull {
            try checkLink(link)
            try cancellation.part(0.9...1).step(link.next.rawValue, of: schema.links.count + 1)
        }
        try checkHistory()
        let overflowCount = try store.mappingErrors { try store.pageOverflow.count(in: snapshot.transaction) }
        if overflowCount != splitPages { note("tails: has \(overflowCount) entries for \(splitPages) packed pages") }
    }

    /// A pass over the pages of all entities, at the first page of one of them.
    private struct Pages {
        let progress: WorkPart
        /// The pages of the entities before.
        let before: Int
        /// The pages of all entities.
        let total: Int

        func step(_ position: Int) throws { try progress.step(before + position, of: total) }
    }

    private func pageCount(_ entity: EntityIndex) throws -> Int {
        try store.mappingErrors { try snapshot.transaction.statistics(store.tables.pages[entity]).entries }
    }

    private func contains(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
        let mask = presence[entity][key.page] ?? 0
        return mask >> UInt64(key.slot) & 1 != 0
    }

    private mutating func checkMeta() throws {
        guard store.format > 1 else { return }
        let problem = try store.mappingErrors {
            let row = try snapshot.transaction.metaBytes(MetaTable.Key.check, store.tables.meta)
            return try snapshot.transaction.withCursor(store.tables.meta) {
                try MetaCheck.problem(row, at: $0, number: snapshot.transactionNumber)
            }
        }
        if let problem { note("\(store.url.path): \(problem)") }
    }

    // MARK: Pages

    private mutating func checkPages(_ entity: EntityIndex, _ pages: Pages) throws {
        let name = schema.entities[entity].name
        var found: [PageNumber: UInt64] = [:]
        var problems: [String] = []
        var split = 0
        var position = 0
        var large = LargeValueCheck(snapshot, entity)
        try snapshot.forEachPage(entity) { number, bytes in
            position += 1
            try pages.step(position)
            if PackedPage.missingByteCount(bytes) > 0 { split += 1 }
            do {
                try store.withPage(bytes, entity: entity, number: number, for: .verifying, check: .full, in: snapshot.reader) {
                    page in
                    found[number] = page.presence
                    try large.add(page, number)
                    if page.presence == 0 { problems.append("\(name), page \(number): has no object") }
                    for slot in SlotIterator(page.presence) where try page.version(slot) > snapshot.generation {
                        problems.append(
                            "\(name), object \(PageAddress.key(page: number, slot: slot)): was written by a later save")
                    }
                }
            } catch let error as StoreError where error.code == .damaged {
                problems.append(error.message)
            }
            return problems.count + large.problems.count < Self.maximumFindings ? .next : .stop
        }
        if problems.isEmpty { try large.finish() }
        problems += large.problems
        presence.append(found)
        splitPages += split
        for problem in problems { note(problem) }
    }

    // MARK: Objects against indexes and references

    private mutating func checkObjects(_ entity: EntityIndex, _ pages: Pages) throws {
        let indexes = store.tables.indexes[entity].filter(snapshot.isReady)
        guard !indexes.isEmpty else { return }
        var counts = [Int](repeating: 0, count: indexes.count)
        for (done, (number, mask)) in presence[entity].sorted(by: { $0.key < $1.key }).enumerated() where !isFull {
            try pages.step(done)
            guard let page = try snapshot.page(entity, number) else { continue }
            for (position, index) in indexes.enumerated() {
                for slot in SlotIterator(mask) {
                    if index.isCompound {
                        counts[position] += 1
                        try checkCompound(page, slot: slot, number: number, in: index, entity: entity)
                        continue
                    }
                    guard let value = try? page.value(slot, index.column) else { continue }
                    let key = PageAddress.key(page: number, slot: slot)
                    if index.isReference, value.isNull { continue }
                    counts[position] += 1
                    try check(value, of: key, in: index, entity)
                }
            }
        }
        for (position, index) in indexes.enumerated() where !isFull {
            let entries = try store.mappingErrors { try snapshot.transaction.statistics(index.database).entries }
            guard entries != counts[position] else { continue }
            note(
                "index on \(schema.entities[entity].name).\(name(of: index, entity)): has \(entries) entries for \(counts[position]) objects"
            )
        }
    }

    private mutating func check(_ value: Value, of key: ObjectKey, in index: Tables.Index, _ entity: EntityIndex) throws {
        let column = schema.entities[entity].columns[index.column]
        let subject = "\(schema.entities[entity].name), object \(key)"
        if let destination = value.referenceKey {
            let isThere = try store.mappingErrors {
                try snapshot.transaction.withCursor(index.database) { try $0.has(destination, value: key) }
            }
            if !isThere { note("\(subject): is missing in the index on \(column.name)") }
            return
        }
        guard let encoded = try? KeyCodec.encode(value, column: column) else {
            note("\(subject): \(column.name) holds a value that does not fit its type")
            return
        }
        let isThere = try store.mappingErrors {
            try snapshot.transaction.withCursor(index.database) { cursor in
                try encoded.bytes.withUnsafeBytes { try cursor.has($0, value: key) }
            }
        }
        if !isThere { note("\(subject): is missing in the index on \(column.name)") }
    }

    private func name(of index: Tables.Index, _ entity: EntityIndex) -> String {
        index.columns.map { schema.entities[entity].columns[$0].name }.joined(separator: "+")
    }

    private mutating func checkCompound(
        _ page: any StorePage, slot: Int, number: PageNumber, in index: Tables.Index, entity: EntityIndex
    ) throws {
        let key = PageAddress.key(page: number, slot: slot)
        let subject = "\(schema.entities[entity].name), object \(key)"
        var bytes: [UInt8] = []
        do {
            let values = try index.columns.map { try page.value(slot, $0) }
            _ = try KeyCodec.append(values, columns: index.columns.map { schema.entities[entity].columns[$0] }, to: &bytes)
        } catch {
            note("\(subject): a value of \(name(of: index, entity)) does not fit its type")
            return
        }
        let isThere = try store.mappingErrors {
            try snapshot.transaction.withCursor(index.database) { cursor in
                try bytes.withUnsafeBytes { try cursor.has($0, value: key) }
            }
        }
        if !isThere { note("\(subject): is missing in the index on \(name(of: index, entity))") }
    }

    // MARK: Links and history

    private mutating func checkLink(_ number: LinkIndex) throws {
        let link = schema.links[number]
        let tables = store.tables.links[number]
        var problems: [String] = []
        let pairs = try store.mappingErrors {
            try snapshot.transaction.withCursor(tables.forward) { forward in
                var pairs: [(ObjectKey, ObjectKey)] = []
                while let entry = try forward.move(.next) { pairs.append((entry.objectKey, entry.objectValue)) }
                return pairs
            }
        }
        for (source, destination) in pairs where problems.count < Self.maximumFindings {
            let missing = RelationCheck.missingEnd(link, from: source, to: destination, in: schema) { contains($0, $1) }
            if let missing { problems.append(missing) }
            let isMirrored = try store.mappingErrors {
                try snapshot.transaction.withCursor(tables.backward) { try $0.has(destination, value: source) }
            }
            if !isMirrored { problems.append("relationship \(link.name): pair \(source), \(destination) is stored one way only") }
        }
        let backward = try store.mappingErrors { try snapshot.transaction.statistics(tables.backward).entries }
        if backward != pairs.count {
            problems.append("relationship \(link.name): \(pairs.count) pairs forward and \(backward) backward")
        }
        for problem in problems { note(problem) }
    }

    private mutating func checkHistory() throws {
        for problem in try HistoryCheck.problems(snapshot, atMost: Self.maximumFindings) { note(problem) }
    }

    /// Checks the leases. Keys of objects must have been leased, and returned keys must never have been used.
    private mutating func checkLeases(_ entity: EntityIndex) throws {
        let name = schema.entities[entity].name
        let number = store.tables.entityNumbers[entity]
        let free = try store.mappingErrors {
            try snapshot.transaction.metaBytes(MetaTable.Key.freeKeys(number), store.tables.meta).flatMap {
                FreeKeysCodec.decode($0)
            }
        }
        for range in free?.ranges ?? [] {
            let mask = presence[entity][range.lowerBound.page] ?? 0
            for key in range where mask >> UInt64(key.slot) & 1 != 0 {
                note("\(name) \(key): its key is among those that were given back unused")
            }
        }
        guard let last = presence[entity].keys.filter({ $0 < PageAddress.unleased.lowerBound }).max(),
            let next = try store.mappingErrors({
                try snapshot.transaction.metaNumber(MetaTable.Key.nextPage(number), store.tables.meta).map(
                    PageNumber.init(rawValue:))
            }), next <= last
        else { return }
        note("\(name), page \(last): lies at or beyond page \(next), the first that was never leased")
    }
}
