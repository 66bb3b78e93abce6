import LMDB
import StoreFiles
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension LMDBStore {
    /// The result of ``salvage(_:to:cancellation:)``.
    public struct Salvage: Sendable, Hashable {
        /// The data that could not be read, in words, one line each.
        public internal(set) var losses: [String] = []
        /// The damage that costs no data, in words, one line each.
        public internal(set) var harmlessDamage: [String] = []
    }

    /// Copies the objects of a file with damaged pages to a new file, as far as whole pages lead to them. For a file that LMDB cannot open:
    /// on damaged pages of its trees, LMDB crashes.
    ///
    /// The copy has the same model, objects and links. Its indexes and its history are empty, so it is only for reading each object once,
    /// without queries, and for copying what is read to a new store. Pages of objects are copied as they are. Their checksums show
    /// damage when the copy is read with `checkedPage`. A damaged table of links is read from the other side of the relationship.
    ///
    /// Reads the file twice, blocks, and needs as much room as the objects. No process may write the file meanwhile.
    /// - Parameters:
    ///   - url: The damaged file. It is not changed.
    ///   - copy: An empty file, or a path without a file.
    ///   - cancellation: Cancels the work.
    /// - Throws: `StoreError` `.damaged` if the part that describes all others is damaged: the meta pages, the start of the main tree or the
    ///   table with the schema; `.inUseElsewhere` if the file changes meanwhile; `.notAStore`, `.formatTooNew`; `CancellationError`.
    public static func salvage(
        _ url: URL, to copy: URL, cancellation: Cancellation = Cancellation()
    ) throws -> Salvage {
        let url = try StoreFile.resolved(url)
        do {
            try FileCheck.checkMetaPages(url.path)
            guard let source = try TreeSalvage(path: url.path, kind: StoredTables.kind(ofTable:)) else {
                throw StoreError(.damaged, "\(url.path) is damaged: its meta pages cannot be read. Restore a backup")
            }
            defer { source.close() }
            let environment = try Environment(
                path: copy.path, options: .init(mapSize: 1 << 38, maximumDatabases: 1 << 16, access: .readWriteWithoutLock))
            defer { environment.close() }
            var copy = SalvageCopy(source, into: environment, path: url.path, cancellation: cancellation)
            let salvage = try copy.run()
            guard try source.isCurrent() else {
                throw StoreError(.inUseElsewhere, "\(url.path) was changed while it was read. Close it there")
            }
            return salvage
        } catch let error as LMDBError {
            throw StoreError(error, path: url.path)
        }
    }
}

/// The copying of the tables of a damaged file.
private struct SalvageCopy {
    /// The number of bytes that one transaction writes.
    private static let batchBytes = 1 << 24

    private let source: TreeSalvage
    private let environment: Environment
    private let path: String
    private let cancellation: Cancellation
    /// The tables of the copy, by name.
    private var databases: [String: Database] = [:]
    private var result = LMDBStore.Salvage()

    init(_ source: TreeSalvage, into environment: Environment, path: String, cancellation: Cancellation) {
        (self.source, self.environment, self.path, self.cancellation) = (source, environment, path, cancellation)
    }

    mutating func run() throws -> LMDBStore.Salvage {
        let stored = try copyMeta()
        let (schema, names) = (stored.schema, StoredTables(stored))
        for (entity, name) in names.pages.enumerated(as: EntityIndex.self) {
            try copyPages(of: schema.entities[entity].name, name)
        }
        for (entity, name) in names.large.enumerated(as: EntityIndex.self) {
            try copyPart(name, "the large values of \(schema.entities[entity].name)")
        }
        try copyPart("dictionaries", "the dictionaries of packed pages")
        try copyPart("tails", "the second parts of packed pages")
        for (link, name) in names.links.enumerated(as: LinkIndex.self) { try copyLinks(schema.links[link].name, name) }
        for index in names.indexes.joined() {
            let entity = schema.entities[index.entity]
            let columns = index.columns.map { entity.columns[$0].name }.joined(separator: ", ")
            try skip(index.name, "the index of \(entity.name).\(columns)")
        }
        try skip("history", "the history")
        if let first = source.mainFaults.first { result.harmlessDamage.insert("the list of the tables: \(first)", at: 0) }
        try environment.write { transaction in
            let meta = try transaction.open(MetaTable.name, .bytes)
            try MetaCheck.write(meta, in: transaction)
        }
        return result
    }

    // MARK: Tables

    /// Copies the table with the schema, and creates all others.
    private mutating func copyMeta() throws -> StoredSchema {
        var rows: [(key: [UInt8], value: [UInt8])] = []
        let faults = try source.trees[MetaTable.name].map { tree in
            try source.forEachEntry(of: tree) { rows.append((Array($0), Array($1))) }
        }
        guard let faults else {
            guard let first = source.mainFaults.first else { throw StoreError.fileOfAnotherProgram(path, "table named meta") }
            throw unreadable("the list of its tables (\(first))")
        }
        if let first = faults.first { throw unreadable("the table with its model (\(first))") }
        let (stored, opened) = try environment.write { transaction in
            let meta = try transaction.open(MetaTable.name, .bytes)
            for (key, value) in rows {
                try key.withUnsafeBytes { key in try value.withUnsafeBytes { try transaction.put(meta, key: key, value: $0) } }
            }
            guard let format = try transaction.metaNumber(MetaTable.Key.format, meta) else {
                throw StoreError.fileOfAnotherProgram(path, "format number")
            }
            guard format <= MetaTable.formatVersion else {
                throw StoreError(
                    .formatTooNew,
                    "\(path) has format \(format); this library reads up to \(MetaTable.formatVersion). Update the library")
            }
            let row = try transaction.metaBytes(MetaTable.Key.check, meta).map { Array($0) }
            let number = source.transactionNumber
            let problem = try (row ?? []).withUnsafeBytes { row in
                try transaction.withCursor(meta) { try MetaCheck.problem(row, at: $0, number: number) }
            }
            if format > 1, let problem { throw unreadable("the table with its model (\(problem))") }
            // The copied row has the number of a commit of the source. The last step writes another one.
            try MetaTable.remove(MetaTable.Key.check, meta, in: transaction)
            let stored = try StoredSchemas(meta, in: transaction, path: path).current
            var databases: [String: Database] = [:]
            for (name, kind) in StoredTables(stored).all { databases[name] = try transaction.open(name, kind) }
            for name in StoredTables.ofEveryStore { databases[name] = try transaction.open(name, .integers) }
            return (stored, databases)
        }
        databases = opened
        return stored
    }

    private func unreadable(_ part: String) -> StoreError {
        StoreError(
            .damaged, "\(path) is damaged: \(part) cannot be read, without which nothing else can be understood. Restore a backup"
        )
    }

    /// Copies the pages of objects of an entity, and notes how many are lost.
    private mutating func copyPages(of entity: String, _ name: String) throws {
        guard let tree = source.trees[name] else {
            return result.losses.append("\(entity): all objects are lost, because the list of the tables is damaged")
        }
        let (faults, count) = try copy(tree, to: databases[name])
        let kept = try environment.write { transaction in
            try databases[name].map { try transaction.statistics($0).entries } ?? 0
        }
        // A flipped bit can give two pages the same number. The copy has the later of them.
        if kept < count {
            result.losses.append(
                "\(entity): \(Int(count) - kept) pages are lost, with up to 64 objects each, because others have their numbers")
        }
        guard let first = faults.first else { return }
        let lost = tree.entries > count && tree.entries - count < 1 << 40 ? Int(tree.entries - count) : nil
        let pages = lost.map { "\($0) pages are" } ?? "an unknown number of pages is"
        result.losses.append("\(entity): \(pages) lost, with up to 64 objects each, because \(first)")
    }

    /// Copies a table whose losses show when the objects are read that need them.
    private mutating func copyPart(_ name: String, _ title: String) throws {
        guard let tree = source.trees[name] else { return }
        if let first = try copy(tree, to: databases[name]).faults.first { result.harmlessDamage.append("\(title): \(first)") }
    }

    /// Copies the pairs of a link. If one of its two tables is damaged, the other has the same pairs.
    private mutating func copyLinks(
        _ link: String, _ names: (forward: String, backward: String)
    ) throws {
        let (forward, backward) = (source.trees[names.forward], source.trees[names.backward])
        let own = try forward.map { try copy($0, to: databases[names.forward]) }
        let other = try backward.map { try copy($0, to: databases[names.backward]) }
        let isWhole = { (found: (faults: TreeSalvage.Faults, count: UInt64)?) in found.map(\.faults.isEmpty) == true }
        if isWhole(own), isWhole(other) { return }
        let reason = own?.faults.first ?? other?.faults.first ?? "the list of the tables is damaged"
        guard !isWhole(own) else { return result.harmlessDamage.append("the inverse of \(link): \(reason)") }
        if let backward { _ = try copy(backward, to: databases[names.forward], reversed: true) }
        guard !isWhole(other) else {
            return result.harmlessDamage.append("\(link): \(reason). Its pairs were read from the other side of the relationship")
        }
        result.losses.append("\(link): pairs are lost, because both sides of the relationship are damaged (\(reason))")
    }

    /// Notes the damage of a table that is not copied.
    private mutating func skip(_ name: String, _ title: String) throws {
        guard let tree = source.trees[name] else {
            return result.harmlessDamage.append("\(title): the list of the tables is damaged")
        }
        try cancellation.check()
        if let first = try source.forEachEntry(of: tree, { _, _ in }).first { result.harmlessDamage.append("\(title): \(first)") }
    }

    // MARK: Entries

    /// Copies the entries of a tree. Returns its faults and the number of entries that were read.
    /// - Parameter reversed: Whether keys and values, which are numbers, are exchanged.
    private func copy(
        _ tree: TreeSalvage.Tree, to database: Database?, reversed: Bool = false
    ) throws -> (faults: TreeSalvage.Faults, count: UInt64) {
        guard let database else { preconditionFailure("a table of the schema was not created") }
        var (batch, bytes, count): ([(key: [UInt8], value: [UInt8])], Int, UInt64) = ([], 0, 0)
        func write() throws {
            try cancellation.check()
            try environment.write { transaction in
                for (key, value) in batch {
                    try key.withUnsafeBytes { key in
                        try value.withUnsafeBytes { try transaction.put(database, key: key, value: $0) }
                    }
                }
            }
            batch = []
            bytes = 0
        }
        let faults = try source.forEachEntry(of: tree) { key, value in
            batch.append(reversed ? (Array(value), Array(key)) : (Array(key), Array(value)))
            bytes += key.count + value.count + 64
            count += 1
            if bytes > Self.batchBytes { try write() }
        }
        try write()
        return (faults, count)
    }
}
