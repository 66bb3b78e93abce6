import Datasets
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// The files that objects are read from.
enum InputFiles {
    /// Throws if a file that is to be written is one that is used.
    static func refuseToReplace(_ used: String, by target: String) throws {
        let files = [used, target].map { URL(fileURLWithPath: $0).resolvingSymlinksInPath().path }
        // A folder is read with its tables.
        let isPart =
            URL(fileURLWithPath: files[1]).deletingLastPathComponent().path == files[0]
            && [".csv", ".tsv", "/\(CSVFiles.modelFile)"].contains(where: files[1].lowercased().hasSuffix)
            && FileManager.default.fileExists(atPath: files[1])
        guard files[0] != files[1], !isPart, !FileKind.areSame(used, target) else {
            throw ToolError.wrongInput(
                "\(target): cannot replace a file that this verb uses. Choose another name or folder for the new file")
        }
    }

    /// Throws if the name of a file to write means standard output, which a verb that creates a store does not write to.
    static func refuseStandardOutput(_ target: String) throws {
        guard target == "-" else { return }
        throw ToolError.wrongInput("-: a store cannot be written to standard output. Name a file, such as ./-")
    }

    /// Opens a store to read all of its objects, or those of one entity and of the entities that inherit from it.
    static func source(_ path: String, entity: String? = nil) async throws -> StoreSource {
        let model = try await FileKind(ofFile: path).storedModel(path)
        let selection = try entity.map { name in
            guard let found = model.entity(named: name) else {
                let known = model.entities.map(\.name) + model.subentities.map(\.name)
                throw ToolError.wrongInput("\(path) has no entity \(name)\(Suggestion.hint(for: name, among: known))")
            }
            return StoreSource.Selection(found, in: model)
        }
        return try StoreSource(path, model, only: selection)
    }

    /// Opens any file or folder that can be imported.
    /// - Parameters:
    ///   - path: The file or folder.
    ///   - options: The choices for data of other programs.
    ///   - given: The names of the options that were given. They are refused where they have no effect.
    /// - Throws: ``ToolError``, the errors of the readers.
    static func anySource(_ path: String, options: DatasetOptions, given: [String]) async throws -> any ObjectSource {
        func checked(_ source: any ObjectSource) throws -> any ObjectSource {
            guard let option = given.first else { return source }
            throw ToolError.wrongInput("\(path): \(option) has no effect on this kind of input. Leave it out")
        }
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue {
            guard !CSVFiles.isIncomplete(path) else {
                throw ToolError.wrongInput(
                    "\(path): an export to this folder was not completed. Export the store again with --replace")
            }
            if CSVSource.isExport(path) { return try checked(CSVSource(path)) }
            return try DatasetSource(Dataset.read(path, options: options))
        }
        switch try FileKind(ofFile: path) {
        case .lmdb: return try await checked(source(path))
        case .sqlite:
            if try await isStore(path) { return try await checked(source(path)) }
            return try DatasetSource(Dataset.read(path, options: options))
        case .other:
            let lowercased = path.lowercased()
            if lowercased.hasSuffix(".csv") || lowercased.hasSuffix(".tsv") || options.delimiter != nil {
                return try DatasetSource(Dataset.read(path, options: options))
            }
            try checkIsText(path)
            return try checked(
                RealmExport.isExport(path) ? DatasetSource(RealmExport.read(path)) : JSONLinesSource(path))
        }
    }

    /// Throws if a file begins like no JSON.
    private static func checkIsText(_ path: String) throws {
        guard let handle = FileHandle(forReadingAtPath: path) else { return }
        defer { try? handle.close() }
        let start = ((try? handle.read(upToCount: 4096)) ?? Data()).drop {
            [0x20, 0x09, 0x0A, 0x0D, 0xEF, 0xBB, 0xBF].contains($0)
        }
        guard let first = start.first else {
            throw ToolError.wrongInput("\(path): is empty. Choose a file with data")
        }
        guard first == UInt8(ascii: "{") || first == UInt8(ascii: "[") else {
            throw ToolError.wrongInput(
                "\(path): is of no kind that can be imported. Choose an SQLite database, a store, a CSV file (.csv, .tsv), a folder of them, "
                    + "JSON lines of `strata export`, or JSON of Realm Studio")
        }
    }

    /// Whether an SQLite file is a store.
    private static func isStore(_ path: String) async throws -> Bool {
        // Opening a database as a store would leave an empty log beside it.
        guard try SQLiteFile.hasTable("strata_meta", in: path) else { return false }
        do {
            _ = try await Model(storedIn: FileKind.sqlite.description(path, .reading))
            return true
        } catch let error as StoreError where error.code == .cannotOpen {
            return false
        }
    }
}
