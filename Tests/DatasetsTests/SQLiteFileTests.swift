import Foundation
import StoreInterface
import StoreModel
import Testing

@testable import Datasets
@testable import SQLiteStore

/// Any SQLite file becomes entities and relationships.
@Suite struct SQLiteFileTests {
    private func dataset(_ sql: String) throws -> Dataset {
        let path = FileManager.default.temporaryDirectory.appending(path: "strata-datasets-test-\(UUID().uuidString).sqlite").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try SQLiteConnection(path: path, role: .creator).runScript(sql)
        return try Dataset.read(path)
    }

    @Test func foreignKeysBecomeReferencesAndJoinTablesLinks() throws {
        let data = try dataset(
            """
            CREATE TABLE Artist (ArtistId INTEGER PRIMARY KEY, Name TEXT);
            CREATE TABLE Track (TrackId INTEGER PRIMARY KEY, Name TEXT NOT NULL, ArtistId INTEGER REFERENCES Artist);
            CREATE TABLE List (ListId INTEGER PRIMARY KEY);
            CREATE TABLE ListTrack (ListId INTEGER REFERENCES List, TrackId INTEGER REFERENCES Track, PRIMARY KEY (ListId, TrackId));
            INSERT INTO Artist VALUES (7, 'A'), (9, NULL);
            INSERT INTO Track VALUES (1, 'x', 9), (2, 'y', 7), (3, 'z', 100), (4, 'w', NULL);
            INSERT INTO List VALUES (5);
            INSERT INTO ListTrack VALUES (5, 2), (5, 4);
            """)
        #expect(data.tables.map(\.name) == ["Artist", "List", "Track"])
        #expect(data.tables[2].attributes.map(\.name) == ["TrackId", "Name"])
        #expect(data.tables[2].references.map(\.name) == ["artist"])
        #expect(data.tables[2].references.map(\.inverse) == ["tracks"])
        #expect(data.tables[2].references[0].rows == [1, 0, -1, -1])
        #expect(data.lostReferences == 1)
        #expect(data.links.map(\.pairs) == [[.init(source: 0, destination: 1), .init(source: 0, destination: 3)]])
        #expect(data.links[0].name == "tracks")
        #expect(data.links[0].inverse == "lists")
    }

    @Test func typesFollowTheDeclarationAsFarAsTheValuesDo() throws {
        let data = try dataset(
            """
            CREATE TABLE T (id INTEGER PRIMARY KEY, flag BOOLEAN, price NUMERIC(10,2), day DATETIME, wrong DATETIME, mixed INTEGER, raw BLOB);
            INSERT INTO T VALUES (1, 1, 2, '2001-01-02 00:00:00', 'soon', 3, x'01'), (2, 0, 2.5, NULL, 'later', 'x', NULL);
            """)
        let table = data.tables[0]
        #expect(table.attributes.map(\.name) == ["id", "flag", "price", "day", "wrong", "mixed", "raw"])
        #expect(table.attributes.map(\.type) == [.int16, .bool, .double, .date, .string, .data, .data])
        #expect(table.attributes[3].values == [.double(86_400), .null])
        #expect(table.attributes[5].values == [.data(Data("3".utf8)), .data(Data("x".utf8))])
    }

    @Test func aTableMayReferToItself() throws {
        let data = try dataset(
            "CREATE TABLE E (EId INTEGER PRIMARY KEY, ReportsTo INTEGER REFERENCES E(EId)); INSERT INTO E VALUES (1, NULL), (2, 1);"
        )
        #expect(data.tables[0].references[0].rows == [-1, 0])
        #expect(data.tables[0].references[0].destination == 0)
    }

    @Test func whatIsNoSQLiteFileIsRefusedInOneLine() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "strata-datasets-\(UUID().uuidString).txt").path
        try Data(repeating: 65, count: 4096).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let error = try #require(throws: DatasetError.self) { try Dataset.read(path) }
        #expect(error.description.contains(path) && !error.description.contains("\n"))
    }
}
