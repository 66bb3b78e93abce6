import Datasets
import Foundation
import ObjectGraph
import StoreFiles
import StoreInterface
import StoreModel

/// A store as a folder of CSV files: `model.json` with the schema, a file per entity, and a file per link with pairs of ids.
///
/// The first column of an entity's file is `$id`. An empty cell is null. An empty text is `""`. If there are keyed collections, they are in
/// `$collections.csv`: a line with the types of each, and a line per entry, whose key and value are Base64.
///
/// A file per table cannot be replaced in one step. While the files get their names, the folder has the file `$incomplete`, which imports
/// refuse. It stays if the process is killed meanwhile.
enum CSVFiles {
    static let incomplete = "$incomplete"
    static let modelFile = "model.json"
    static let idColumn = "$id"
    static let collections = "$collections"
    static let collectionColumns = ["collection", "keys", "values", "key", "value"]

    /// Returns the name of an entity's or link's file.
    /// - Throws: ``ToolError`` for a name that no file can have.
    static func file(_ name: String) throws -> String {
        guard !name.contains("/"), !name.contains("\u{0}"), !name.hasPrefix("."), name.utf8.count < 200, name != collections
        else {
            throw ToolError.failed(
                "cannot write a file named \(name).csv: the name is not one of files. Export as JSON lines or SQLite")
        }
        return name + ".csv"
    }

    /// Writes the objects of a source to a folder.
    /// - Parameter store: The file of the source, which the export must not replace. New files get its mode.
    static func write(
        _ source: any ObjectSource, in store: String, to folder: String, existing: ExistingFile
    ) throws -> TransferSummary {
        let (model, links) = (source.model, source.model.storeSchema.links)
        let names = try files(model)
        for name in names + ["\(collections).csv"] { try InputFiles.refuseToReplace(store, by: "\(folder)/\(name)") }
        let made = try makeFolder(folder, existing)
        let wasIncomplete = isIncomplete(folder)
        var (writers, finished): ([TextWriter], [String]) = ([], [])
        do {
            for name in names { writers.append(try TextWriter("\(folder)/\(name)", existing: .replace, dataOf: store)) }
            let tables = Array(writers.dropFirst(2).prefix(model.entities.count))
            let pairs = Array(writers.suffix(links.count))
            try writers[0].write("This export is not complete. Export the store again with --replace.\n")
            try writers[1].write(try SchemaText.json(model.storeSchema) + "\n")
            for (writer, entity) in zip(tables, model.entities) {
                try writer.write(line([idColumn] + entity.columns.map(\.name)))
            }
            for writer in pairs { try writer.write(line(["source", "destination"])) }
            var summary = try write(source, entities: tables, links: pairs)
            if source.hasCollections {
                let writer = try TextWriter("\(folder)/\(collections).csv", existing: .replace, dataOf: store)
                writers.append(writer)
                try write(recordsOf: source, to: writer, &summary)
            }
            // A full disk is noticed before a file of a former export is replaced.
            for writer in writers { try writer.complete() }
            for writer in writers {
                try writer.finish()
                if let path = writer.target { finished.append(path) }
            }
            // The collections of a former export to this folder.
            if !source.hasCollections { unlink("\(folder)/\(collections).csv") }
            unlink("\(folder)/\(incomplete)")
            syncFolder(folder)
            return summary
        } catch {
            for writer in writers { writer.discard() }
            // A former export of which no file was replaced is complete.
            let isWhole = !wasIncomplete && finished.count <= 1
            if isWhole || !made.isEmpty { for path in finished { unlink(path) } }
            // Only if they are empty: another program may have put files there meanwhile.
            for folder in made { rmdir(folder) }
            throw error
        }
    }

    /// Whether the files of a folder may be of two exports.
    static func isIncomplete(_ folder: String) -> Bool {
        FileManager.default.fileExists(atPath: "\(folder)/\(incomplete)")
    }

    /// Makes the names of files in a folder, and their removals, durable.
    private static func syncFolder(_ folder: String) {
        let descriptor = open(folder, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    /// Returns the names of the files in the order in which they get them: the mark, the schema, a file per entity, and a file per link.
    private static func files(_ model: Model) throws -> [String] {
        var files = [incomplete, modelFile]
        for name in model.entities.map(\.name) + model.storeSchema.links.map(\.name) {
            let file = try file(name)
            guard !files.contains(file) else {
                throw ToolError.failed(
                    "cannot write \(file): an entity and a relationship would both have this file. Export as JSON lines or SQLite"
                )
            }
            files.append(file)
        }
        return files
    }

    /// Creates the folder of an export, and the folders that lead to it. Returns those that were missing, innermost first.
    private static func makeFolder(_ folder: String, _ existing: ExistingFile) throws -> [String] {
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder) {
            guard isFolder.boolValue else {
                throw ToolError.wrongInput(
                    "\(folder): is a file, and CSV is a folder with a file per entity. Choose another name")
            }
            guard existing == .replace else {
                throw ToolError.wrongInput("\(folder) already exists. Choose another name, or replace it with --replace")
            }
            return []
        }
        var missing: [URL] = []
        var next = URL(fileURLWithPath: folder, isDirectory: false).standardizedFileURL
        while !FileManager.default.fileExists(atPath: next.path) {
            missing.append(next)
            next.deleteLastPathComponent()
        }
        guard !missing.isEmpty else { throw ToolError.wrongInput("'\(folder)' is no name of a new folder. Choose another name") }
        var made: [String] = []
        do {
            for url in missing.reversed() {
                // The folder must not have the name of a store's log or lock, either.
                if url == missing[0] { try PartialFile(for: url, existing: .refuse).discard() }
                guard mkdir(url.path, 0o777) == 0 else {
                    let reason = String(cString: strerror(errno))
                    throw ToolError.wrongInput("\(folder) cannot be created: \(reason). Check the path")
                }
                made.insert(url.path, at: 0)
            }
        } catch {
            for folder in made { rmdir(folder) }
            throw error
        }
        return made
    }

    private static func write(
        _ source: any ObjectSource, entities: [TextWriter], links: [TextWriter]
    ) throws -> TransferSummary {
        let progress = ProgressBar("objects")
        defer { progress.finish() }
        var summary = TransferSummary(objects: entities.map { _ in 0 })
        let total = source.objectCount ?? 0
        while let object = try source.next() {
            try Task.checkCancellation()
            let columns = source.model.entities[object.entity].columns
            let cells = zip(object.values, columns).map { ValueText.text($0, $1.type) }
            try entities[object.entity].write(line(["\(object.id)"] + cells))
            for link in object.links {
                for id in link.destinations { try links[link.link].write("\(object.id),\(id)\n") }
                summary.pairs += link.destinations.count
            }
            summary.objects[object.entity] += 1
            progress.update(summary.objectCount, of: total)
        }
        return summary
    }

    private static func write(
        recordsOf source: any ObjectSource, to writer: TextWriter, _ summary: inout TransferSummary
    ) throws {
        try writer.write(line(collectionColumns))
        var known: [CollectionName: StoredCollection] = [:]
        while let record = try source.nextRecord() {
            try Task.checkCancellation()
            summary.count(record)
            switch record {
            case .collection(let collection):
                known[CollectionName(collection.name)] = collection
                try writer.write(line([collection.name, collection.keyType, collection.valueType, nil, nil]))
            case .entry(let name, let entry):
                guard let collection = known[CollectionName(name)] else { continue }
                let cells = [entry.key.base64EncodedString(), entry.value.base64EncodedString()]
                try writer.write(line([name, collection.keyType, collection.valueType] + cells))
            }
        }
    }

    /// Returns a line of cells. nil is null.
    private static func line(_ cells: [String?]) -> String {
        cells.map { cell in
            guard let cell else { return "" }
            let isPlain =
                !cell.isEmpty && cell.utf8.allSatisfy { $0 != 0x22 && $0 != 0x2C && $0 != 0x0A && $0 != 0x0D }
                && cell.utf8.first != 0xEF
            return isPlain ? cell : quoted(cell)
        }.joined(separator: ",") + "\n"
    }

    /// Doubles each quote byte. As characters, a quote with a combining mark is another one.
    private static func quoted(_ cell: String) -> String {
        let bytes = cell.utf8.flatMap { $0 == 0x22 ? [$0, $0] : [$0] }
        return "\"" + String(decoding: bytes, as: UTF8.self) + "\""
    }
}

/// The objects of a folder of CSV files that ``CSVFiles`` has written.
final class CSVSource: ObjectSource {
    let model: Model
    var objectCount: Int? { nil }
    let notes: [String] = []
    var place: String? { open.map { "\($0.file):\(line)" } }
    private let folder: String
    private var entity: EntityIndex = 0
    private var open: (file: String, parser: CSVParser)?
    /// The line of the last object in the open file.
    private var line = 0
    /// The file of the keyed collections, if there is one.
    private var records: CSVParser?
    /// The pairs of each link, by the id of the source.
    private var pairs: [[UInt64: [UInt64]]] = []

    /// Whether a folder has the schema that ``CSVFiles`` writes.
    static func isExport(_ folder: String) -> Bool {
        FileManager.default.fileExists(atPath: "\(folder)/\(CSVFiles.modelFile)")
    }

    init(_ folder: String) throws {
        self.folder = folder
        let name = "\(folder)/\(CSVFiles.modelFile)"
        // Reading a device or a pipe might never end.
        _ = try FileKind(ofFile: name)
        guard let schema = FileManager.default.contents(atPath: name) else { throw Self.unreadable(name) }
        model = try SchemaText.model(schema, in: name)
        pairs = try model.storeSchema.links.map { try Self.pairs("\(folder)/\(CSVFiles.file($0.name))") }
        let file = "\(folder)/\(CSVFiles.collections).csv"
        guard FileManager.default.fileExists(atPath: file) else { return }
        var parser = try Self.parser(file)
        guard let header = try parser.next(), header.fields.map(\.text) == CSVFiles.collectionColumns else {
            throw ToolError.wrongInput(
                "\(file):1: the columns are \(CSVFiles.collectionColumns.joined(separator: ", ")). Correct the first line")
        }
        records = parser
    }

    func nextRecord() throws -> StoredCollection.Record? {
        guard let record = try records?.next() else { return nil }
        let cells = record.fields
        guard cells.count == CSVFiles.collectionColumns.count,
            let collection = try? StoredCollection(name: cells[0].text, keyType: cells[1].text, valueType: cells[2].text),
            let key = Data(base64Encoded: cells[3].text), let value = Data(base64Encoded: cells[4].text)
        else {
            throw ToolError.wrongInput(
                "\(folder)/\(CSVFiles.collections).csv:\(record.line): a collection with its types, and a key and a value in Base64, "
                    + "are expected. Correct the line")
        }
        // An empty key or value is in quotes.
        let hasEntry = !cells[4].text.isEmpty || cells[4].wasQuoted
        return hasEntry ? .entry(collection.name, StoredCollection.Entry(key: key, value: value)) : .collection(collection)
    }

    private static func parser(_ path: String) throws -> CSVParser {
        do { return try CSVParser(path: path, file: path) } catch is DatasetError { throw unreadable(path) }
    }

    private static func unreadable(_ path: String) -> ToolError {
        .wrongInput("\(path): cannot be read. Check that it exists and may be read")
    }

    private static func pairs(_ path: String) throws -> [UInt64: [UInt64]] {
        var parser = try parser(path)
        guard let header = try parser.next(), header.fields.map(\.text) == ["source", "destination"] else {
            throw ToolError.wrongInput("\(path):1: the columns are source and destination. Correct the first line")
        }
        var pairs: [UInt64: [UInt64]] = [:]
        while let record = try parser.next() {
            guard record.fields.count == 2, let source = UInt64(record.fields[0].text), let end = UInt64(record.fields[1].text)
            else {
                throw ToolError.wrongInput("\(path):\(record.line): two ids are expected. Correct the line")
            }
            pairs[source, default: []].append(end)
        }
        return pairs
    }

    func next() throws -> TransferObject? {
        while model.entities.indices().contains(entity) {
            if open == nil { try openFile() }
            if let record = try open?.parser.next() {
                line = record.line
                return try object(record)
            }
            for (link, rest) in pairs.enumerated(as: LinkIndex.self)
            where model.storeSchema.links[link].source == entity && !rest.isEmpty {
                throw ToolError.wrongInput(
                    "\(folder): the link \(model.storeSchema.links[link].name) has ids that \(model.entities[entity].name).csv does not "
                        + "have. Remove their lines")
            }
            open = nil
            entity = entity.next
        }
        return nil
    }

    private func openFile() throws {
        let file = "\(folder)/\(try CSVFiles.file(model.entities[entity].name))"
        var parser = try Self.parser(file)
        let columns = [CSVFiles.idColumn] + model.entities[entity].columns.map(\.name)
        guard let header = try parser.next(), header.fields.map(\.text) == columns else {
            throw ToolError.wrongInput("\(file):1: the columns are \(columns.joined(separator: ", ")). Correct the first line")
        }
        open = (file, parser)
    }

    private func object(_ record: CSVParser.Record) throws -> TransferObject {
        let columns = model.entities[entity].columns
        func failure(_ reason: String) -> ToolError { .wrongInput("\(open?.file ?? folder):\(record.line): \(reason)") }
        guard record.fields.count == columns.count + 1 else {
            throw failure("\(record.fields.count) cells, but there are \(columns.count + 1) columns. Correct the line")
        }
        guard let id = UInt64(record.fields[0].text), id > 0 else { throw failure("$id is a number from 1. Correct the line") }
        let values = try zip(record.fields.dropFirst(), columns).map { field, column -> Value in
            if field.text.isEmpty, !field.wasQuoted {
                guard column.isOptional else { throw failure("\(column.name) is missing. Give it a value") }
                return .null
            }
            guard let value = ValueText.value(field.text, column.type) else {
                throw failure(ValueText.misfit(column.name, text: field.text, type: column.type))
            }
            return value
        }
        var object = TransferObject(entity: entity, id: id, values: values)
        for (link, definition) in model.storeSchema.links.enumerated(as: LinkIndex.self) where definition.source == entity {
            guard let found = pairs[link].removeValue(forKey: id) else { continue }
            object.links.append(TransferObject.Links(link: link, destinations: found))
        }
        return object
    }
}
