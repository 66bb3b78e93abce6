import Foundation
import Testing

@testable import Datasets
@testable import SQLiteStore
import StoreInterface
import StoreModel

/// One set of tables, read from SQLite with its foreign keys and from CSV files without any.
@Suite struct SameDataTests {
    private struct Source {
        var name: String
        /// Each column with its declaration in SQL.
        var columns: [(name: String, sql: String)]
        /// Texts without quotes; nil for null.
        var rows: [[String?]]

        var csv: String {
            let lines = [columns.map(\.name)] + rows.map { row in row.map { $0 ?? "" } }
            return lines.map { $0.joined(separator: ",") + "\n" }.joined()
        }

        var sql: String {
            let values = rows.map { row in "(" + row.map { $0.map { "'\($0)'" } ?? "NULL" }.joined(separator: ", ") + ")" }
            return "CREATE TABLE \(name) (\(columns.map { "\($0.name) \($0.sql)" }.joined(separator: ", ")));\n"
                + "INSERT INTO \(name) VALUES \(values.joined(separator: ", "));\n"
        }
    }

    private static func rows(_ count: Int, _ row: (Int) -> [String?]) -> [[String?]] { (1...count).map(row) }

    private static let sources = [
        Source(
            name: "Artist", columns: [("ArtistId", "INTEGER PRIMARY KEY"), ("Name", "TEXT")],
            rows: rows(7) { ["\($0)", "artist \($0)"] }),
        Source(
            name: "Employee", columns: [("EmployeeId", "INTEGER PRIMARY KEY"), ("ReportsTo", "INTEGER REFERENCES Employee")],
            rows: rows(5) { ["\($0)", $0 == 1 ? nil : "\($0 / 2)"] }),
        Source(
            name: "Folder", columns: [("FolderId", "INTEGER PRIMARY KEY"), ("ParentId", "INTEGER REFERENCES Folder")],
            rows: rows(6) { ["\($0 + 20)", $0 == 1 ? nil : "\($0 / 2 + 20)"] }),
        Source(
            name: "Playlist", columns: [("PlaylistId", "INTEGER PRIMARY KEY"), ("Title", "TEXT")],
            rows: rows(3) { ["\($0 * 10)", "list \($0)"] }),
        Source(
            name: "PlaylistTrack",
            columns: [
                ("PlaylistId", "INTEGER REFERENCES Playlist"),
                ("TrackId", "INTEGER REFERENCES Track, PRIMARY KEY (PlaylistId, TrackId)"),
            ],
            rows: rows(24) { ["\($0 % 3 * 10 + 10)", "\(100 + ($0 * 5) % 40)"] }),
        Source(
            name: "Track",
            columns: [
                ("TrackId", "INTEGER PRIMARY KEY"), ("Title", "TEXT"), ("ArtistId", "INTEGER REFERENCES Artist"),
                ("FolderId", "INTEGER REFERENCES Folder"),
            ], rows: rows(40) { ["\($0 + 99)", "track \($0)", $0 % 9 == 0 ? nil : "\($0 % 7 + 1)", "\($0 % 6 + 21)"] }),
    ]

    private static func read(options: DatasetOptions = DatasetOptions(), _ write: (URL) throws -> String) throws -> Dataset {
        let folder = FileManager.default.temporaryDirectory.appending(path: "strata-same-data-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        return try Dataset.readInMemoryAndInFiles(write(folder), options: options)
    }

    /// The references and links, one line each, by the names of their tables.
    private static func relations(_ data: Dataset) -> [String] {
        let references = data.tables.flatMap { table in
            table.references.map {
                "\(table.name).\($0.name) -> \(data.tables[$0.destination].name).\($0.inverse): \($0.rows)"
            }
        }
        let links = data.links.map { link in
            let pairs = link.pairs.map { "\($0.source)-\($0.destination)" }.sorted()
            return
                "\(data.tables[link.source].name).\(link.name) <-> \(data.tables[link.destination].name).\(link.inverse): \(pairs)"
        }
        return (references + links).sorted()
    }

    @Test func `CSV files give the references and links that the same data has in SQLite`() throws {
        let sqlite = try Self.read { folder in
            let path = folder.appending(path: "music.sqlite").path
            try SQLiteConnection(path: path, role: .creator).runScript(Self.sources.map(\.sql).joined())
            return path
        }
        let csv = try Self.read { folder in
            for source in Self.sources {
                try Data(source.csv.utf8).write(to: folder.appending(path: "\(source.name).csv"))
            }
            return folder.path
        }
        #expect(Self.relations(sqlite).count == 5)
        #expect(Self.relations(csv) == Self.relations(sqlite))
        #expect(csv.tables.map(\.name).sorted() == sqlite.tables.map(\.name).sorted())
        #expect((csv.objectCount, csv.linkCount, csv.lostReferences) == (sqlite.objectCount, sqlite.linkCount, 0))
        for table in sqlite.tables {
            let other = try #require(csv.tables.first { $0.name == table.name })
            #expect(other.attributes.map(\.name) == table.attributes.map(\.name), "\(table.name)")
        }
    }

    // MARK: Chinook

    /// A real SQLite file beside the repository.
    private static let chinook = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "shared/data/chinook.sqlite").path

    /// Writes each table of a SQLite file as a CSV file.
    private static func exportTables(of path: String, to folder: URL) throws {
        let database = try DatabaseReader(path: path)
        for table in try SQLiteTable.all(in: database) {
            let columns = try table.values(in: database, scratch: nil)
            let rows = (columns.first ?? []).indices.map { row in columns.map { cell($0[row]) }.joined(separator: ",") }
            let lines = [table.columns.map(\.name).joined(separator: ",")] + rows
            try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: folder.appending(path: "\(table.name).csv"))
        }
    }

    private static func cell(_ value: Value) -> String {
        switch value {
        case .int(let number): "\(number)"
        case .double(let number): "\(number)"
        case .string(let text): "\"\(text.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\""))\""
        default: ""
        }
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: chinook), "the file chinook.sqlite is missing"))
    func `Chinook as CSV files has the model and the values of the SQLite file, with one reference that is chosen`() throws {
        let sqlite = try Dataset.read(Self.chinook)
        func readCSV(_ references: [String: String]) throws -> Dataset {
            try Self.read(options: DatasetOptions(references: references)) { folder in
                try Self.exportTables(of: Self.chinook, to: folder)
                return folder.path
            }
        }
        // The one foreign key that neither names its table nor has words: the numbers 3, 4 and 5 are keys of nearly every table.
        let unnamed = "Customer.supportRep -> Employee.customers"
        let inferred = try readCSV([:])
        #expect(Self.relations(inferred) == Self.relations(sqlite).filter { !$0.hasPrefix(unnamed) })
        let note = try #require(inferred.notes.first { $0.contains("could refer") })
        #expect(note.hasPrefix("Customer.SupportRepId stays an attribute, but could refer to MediaType, Employee, "))
        #expect(inferred.notes.count { $0.contains("could refer") } == 1)

        let csv = try readCSV(["Customer.SupportRepId": "Employee"])
        #expect(Self.relations(csv) == Self.relations(sqlite) && Self.relations(csv).count == 10)
        #expect(!csv.notes.contains { $0.contains("could refer") })
        #expect(csv.tables.count == sqlite.tables.count && csv.lostReferences == 0)
        for table in sqlite.tables {
            let other = try #require(csv.tables.first { $0.name == table.name })
            #expect(other.attributes.map(\.name) == table.attributes.map(\.name), "\(table.name)")
            for (found, expected) in zip(other.attributes, table.attributes) {
                let name = "\(table.name).\(expected.name)"
                #expect(found.type == expected.type, "\(name)")
                // SQLite declares what may be null, and CSV files show what is.
                #expect(expected.isOptional || !found.isOptional, "\(name)")
                #expect(found.values == expected.values, "\(name)")
            }
        }
    }
}
