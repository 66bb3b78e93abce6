import Foundation
import StoreInterface
import StoreModel
import Testing

@testable import Datasets
@testable import SQLiteStore

/// Any SQLite file becomes entities and relationships.
@Suite struct SQLiteFileTests {
    private func dataset(_ sql: String, options: DatasetOptions = DatasetOptions()) throws -> Dataset {
        let path = FileManager.default.temporaryDirectory.appending(path: "strata-datasets-test-\(UUID().uuidString).sqlite").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try SQLiteConnection(path: path, role: .creator).runScript(sql)
        return try Dataset.readInMemoryAndInFiles(path, options: options)
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
        // One artist is missing, so that the keys are kept.
        #expect(data.tables[2].attributes.map(\.name) == ["TrackId", "Name", "ArtistId"])
        #expect(data.tables[2].attributes[2].values == [9, 7, 100, .null])
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
        #expect(table.attributes.map(\.type) == [.int64, .bool, .double, .date, .string, .data, .data])
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

    @Test func `a text that is not UTF-8 keeps its bytes, with a note`() throws {
        let data = try dataset(
            "CREATE TABLE t (a TEXT, b TEXT); INSERT INTO t VALUES (CAST(x'4AFC72' AS TEXT), 'x'), ('y', 'é');")
        let table = data.tables[0]
        #expect(table.attributes.map(\.type) == [.data, .string])
        #expect(table.attributes[0].values == [.data(Data([0x4A, 0xFC, 0x72])), .data(Data("y".utf8))])
        #expect(data.notes.contains { $0.hasPrefix("t.a: 1 of 2 rows have texts that are not UTF-8") })
    }

    @Test func `an integer that is no double stays an integer`() throws {
        let data = try dataset(
            """
            CREATE TABLE t (a NUMERIC, b NUMERIC, c INTEGER);
            INSERT INTO t VALUES (1234567890123456789, 1234567890123456789, 1), (2, 0.5, 2);
            """)
        let table = data.tables[0]
        #expect(table.attributes.map(\.type) == [.int64, .data, .int64])
        #expect(table.attributes[0].values == [1_234_567_890_123_456_789, 2])
        #expect(table.attributes[1].values == [.data(Data("1234567890123456789".utf8)), .data(Data("0.5".utf8))])
        #expect(data.notes.contains { $0.hasPrefix("t.b: its values are of several types") })
    }

    @Test func `foreign keys are compared as SQLite compares them`() throws {
        let data = try dataset(
            """
            CREATE TABLE p (id INTEGER PRIMARY KEY);
            CREATE TABLE n (name TEXT COLLATE NOCASE PRIMARY KEY);
            CREATE TABLE w (code TEXT PRIMARY KEY) WITHOUT ROWID;
            CREATE TABLE c (pid REFERENCES p, nid TEXT REFERENCES n, wid INTEGER REFERENCES w);
            CREATE TABLE j (pid REFERENCES p, nid REFERENCES n, PRIMARY KEY (pid, nid));
            INSERT INTO p VALUES (1), (2);
            INSERT INTO n VALUES ('Ann'), ('Bob');
            INSERT INTO w VALUES ('5'), ('6');
            INSERT INTO c VALUES ('2', 'ANN', 6), (1.0, 'bob', 5), ('x', 'Ann ', 7), (NULL, NULL, NULL);
            INSERT INTO j VALUES ('1', 'ANN'), (2, 'Bob'), (1, 'Ann'), (9, 'Bob');
            """)
        let table = try #require(data.tables.first { $0.name == "c" })
        #expect(table.references.map(\.rows) == [[1, 0, -1, -1], [0, 1, -1, -1], [1, 0, -1, -1]])
        // Each has a key that is lost.
        #expect(
            table.references.map(\.name) == ["pid", "nid", "wid"] && table.attributes.map(\.name) == ["pid_", "nid_", "wid_"])
        #expect(table.attributes[1].values == ["ANN", "bob", "Ann ", .null])
        #expect(data.links.map(\.pairs) == [[.init(source: 0, destination: 0), .init(source: 1, destination: 1)]])
        #expect(data.notes.contains { $0.hasPrefix("j: 2 links") && $0.contains("2 rows") })
        #expect(data.lostReferences == 5)
    }

    @Test func `virtual tables, views and tables with too many columns are left out with a note`() throws {
        let wide = (0..<200).map { "c\($0) TEXT" }.joined(separator: ", ")
        let data = try dataset(
            """
            CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT, size INTEGER AS (length(text)) STORED, half AS (size / 2));
            CREATE VIRTUAL TABLE search USING fts5(text);
            CREATE VIEW long AS SELECT * FROM note WHERE size > 2;
            CREATE TABLE wide (\(wide));
            CREATE TABLE sqliteNotes (a TEXT);
            INSERT INTO note (text) VALUES ('abc');
            INSERT INTO search VALUES ('abc');
            """)
        #expect(data.tables.map(\.name) == ["note", "sqliteNotes"])
        // Values of generated columns are imported.
        #expect(data.tables[0].attributes.map(\.name) == ["id", "text", "size", "half"])
        #expect(data.tables[0].attributes.map { $0.values[0] } == [1, "abc", 3, 1])
        for text in ["virtual table search of fts5", "views are left out", "the table wide is left out"] {
            #expect(data.notes.contains { $0.contains(text) }, "\(text)")
        }
    }

    @Test func `a table of a module that is missing is left out`() throws {
        let data = try dataset(
            """
            CREATE TABLE a (id INTEGER PRIMARY KEY);
            PRAGMA writable_schema = ON;
            INSERT INTO sqlite_master VALUES ('table', 'gone', 'gone', 0, 'CREATE VIRTUAL TABLE gone USING no_such_module(x)');
            INSERT INTO sqlite_master VALUES ('table', 'docs', 'docs', 0, 'CREATE VIRTUAL TABLE docs USING fts5(x, tokenize = no_such)');
            PRAGMA writable_schema = OFF;
            CREATE TABLE docs_idx (segid, term, pgno);
            """)
        #expect(data.tables.map(\.name) == ["a"])
        #expect(data.notes.contains { $0.contains("gone of no_such_module") })
    }

    @Test func `odd keys and joins stay entities, and the rest is imported`() throws {
        let data = try dataset(
            """
            CREATE TABLE a (id INTEGER PRIMARY KEY);
            CREATE TABLE b (x INTEGER, y INTEGER, PRIMARY KEY (x, y)) WITHOUT ROWID;
            CREATE TABLE ab (a REFERENCES a, b REFERENCES b, PRIMARY KEY (a, b));
            CREATE TABLE aa (l REFERENCES a, r REFERENCES a, PRIMARY KEY (l, r));
            CREATE TABLE aaa (m REFERENCES aa, n REFERENCES a, PRIMARY KEY (m, n));
            CREATE TABLE k (x INTEGER, y INTEGER, FOREIGN KEY (x, y) REFERENCES b (x, y));
            CREATE TABLE gone (z REFERENCES nowhere);
            INSERT INTO a VALUES (1);
            INSERT INTO b VALUES (1, 2);
            INSERT INTO ab VALUES (1, 5);
            INSERT INTO k VALUES (1, 2);
            """)
        #expect(Set(data.tables.map(\.name)) == ["a", "b", "ab", "aa", "aaa", "k", "gone"])
        #expect(data.links.isEmpty)
        let ab = try #require(data.tables.first { $0.name == "ab" })
        #expect(ab.references.map(\.name) == ["a"] && ab.attributes.map(\.name) == ["b"])
        #expect(data.notes.contains { $0.contains("k: the foreign key (x, y) to b has several columns") })
        #expect(data.notes.contains { $0.contains("gone.z stays an attribute") })
        _ = try data.model()
    }

    @Test func `constraints, indexes, defaults and delete rules come from the declarations`() throws {
        let data = try dataset(
            """
            CREATE TABLE p (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, note TEXT DEFAULT 'it''s', made DATETIME DEFAULT CURRENT_TIMESTAMP,
                count INTEGER NOT NULL DEFAULT (7), small SMALLINT, ratio REAL DEFAULT 0.5, day DATE, raw BLOB, flag BOOLEAN DEFAULT 1);
            CREATE TABLE c (a TEXT, b INTEGER, p INTEGER NOT NULL REFERENCES p ON DELETE CASCADE, q INTEGER REFERENCES p ON DELETE RESTRICT,
                UNIQUE (a, p));
            CREATE INDEX byCount ON p (count);
            CREATE INDEX byTwo ON p (small, name);
            CREATE INDEX some ON p (ratio) WHERE ratio > 1;
            CREATE INDEX byLength ON p (length(name));
            INSERT INTO c VALUES ('x', 1, 1, NULL), ('x', 1, 2, NULL);
            INSERT INTO p (id, name) VALUES (1, 'a'), (2, 'b');
            """)
        let (c, p) = (data.tables[0], data.tables[1])
        #expect(
            p.attributes.map(\.type) == [.int64, .string, .string, .date, .int64, .int16, .double, .date, .data, .bool])
        #expect(p.attributes.map(\.isOptional) == [false, false, true, true, false, true, true, true, true, true])
        #expect(p.attributes.map(\.defaultValue) == [.null, .null, "it's", .null, 7, .null, .double(0.5), .null, .null, true])
        #expect(
            Set(p.indexes) == [
                .unique("id"), .unique("name"), .index("count"), .index("small", "name"),
            ])
        #expect(c.indexes == [.unique("a", "p")])
        #expect(c.references.map(\.inverseDeleteRule) == [.cascade, .deny])
        let model = try data.model()
        #expect(model.entities[1].attribute(named: "name")?.index == .unique)
    }

    /// Catches: times that become equal, although their column is unique.
    @Test func `times that are finer than a date stay texts, and unique`() throws {
        let data = try dataset(
            """
            CREATE TABLE e (at TIMESTAMP UNIQUE, day TIMESTAMP);
            INSERT INTO e VALUES ('2024-05-01 12:00:00.123456789', '2024-05-01 12:00:00.125');
            INSERT INTO e VALUES ('2024-05-01 12:00:00.123456790', '2024-05-01');
            """)
        #expect(data.tables[0].attributes.map(\.type) == [.string, .date])
        #expect(data.tables[0].indexes == [.unique("at")])
    }

    @Test func `tables can be left out, and foreign keys can stay attributes`() throws {
        let sql = """
            CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (a INTEGER REFERENCES a);
            CREATE TABLE ab (x REFERENCES a, y REFERENCES a, PRIMARY KEY (x, y));
            INSERT INTO a VALUES (1); INSERT INTO b VALUES (1);
            """
        let plain = try dataset(sql, options: DatasetOptions(makesReferences: false))
        #expect(plain.tables.map(\.name) == ["a", "ab", "b"] && plain.tables.allSatisfy { $0.references.isEmpty })
        #expect(plain.links.isEmpty && plain.tables[2].attribute(named: "a")?.values == [1])
        let less = try dataset(sql, options: DatasetOptions(excludedTables: ["A", "ab"]))
        #expect(less.tables.map(\.name) == ["b"] && less.tables[0].attribute(named: "a")?.values == [1])
        let error = try #require(throws: DatasetError.self) { try dataset(sql, options: DatasetOptions(excludedTables: ["ac"])) }
        #expect(error.description.contains("did you mean"))
    }

    /// Catches: a foreign key of another column or table, whose name differs only by the case of a letter that SQLite tells apart.
    @Test func `foreign keys follow names that differ by the case of a letter outside of ASCII`() throws {
        let data = try dataset(
            """
            CREATE TABLE p (id INTEGER PRIMARY KEY);
            CREATE TABLE c ("Ä" INTEGER, "ä" INTEGER REFERENCES p (id));
            CREATE TABLE "Ö" (id INTEGER PRIMARY KEY);
            CREATE TABLE "ö" (id INTEGER PRIMARY KEY);
            CREATE TABLE d (x INTEGER REFERENCES "ö");
            INSERT INTO p VALUES (1), (2), (7);
            INSERT INTO c VALUES (7, 2), (7, 1);
            INSERT INTO "Ö" VALUES (5), (6);
            INSERT INTO "ö" VALUES (6), (7);
            INSERT INTO d VALUES (7);
            """)
        let c = try #require(data.tables.first { $0.name == "c" })
        #expect(c.references.map(\.rows) == [[1, 0]])
        #expect(c.attributes.count == 1 && c.attributes.first?.values == [7, 7])
        let d = try #require(data.tables.first { $0.name == "d" })
        #expect(d.references.map(\.rows) == [[1]])
        #expect(data.lostReferences == 0)
    }
}
