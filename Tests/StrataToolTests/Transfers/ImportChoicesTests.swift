import Datasets
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import Testing

/// `strata import` of files of other programs: choices, notes, and real files.
@Suite struct ImportChoicesTests {
    private func write(_ text: String, _ name: String, _ folder: ToolFolder) throws {
        try Data(text.utf8).write(to: folder.url.appending(path: name))
    }

    @Test func `one CSV file becomes a store, with the delimiter and types that are asked for`() async throws {
        let folder = try ToolFolder()
        try write("\u{FEFF};zip;price\r\n1;01234;1.50\r\n2;99;2.25\r\n", "goods.csv", folder)
        let run = await ToolRun(
            "import", folder.path("goods.csv"), folder.path("out"), "--delimiter", ";", "--types", "goods.price=text", "--swift",
            folder.path("Models.swift"))
        #expect(run.status == 0 && run.errors.contains("is named column1"), "\(run)")
        let found = try await ToolRun("query", folder.path("out"), "goods", "--json").list()
        #expect(
            found.map { $0["zip"] as? String } == ["01234", "99"] && found.map { $0["price"] as? String } == ["1.50", "2.25"])
        #expect(found.map { $0["column1"] as? Int } == [1, 2])
        try write("a\tb\n1\tx\n", "t.tsv", folder)
        #expect(await ToolRun("import", folder.path("t.tsv"), folder.path("out2")).status == 0)
        #expect(await ToolRun("query", folder.path("out2"), "t", "b = 'x'", "--count").output == "1\n")
        for (words, text) in [
            (["--delimiter", ";;"], "not one character"), (["--types", "a=word"], "word"), (["--types", "a"], "no ="),
            (["--types", "c=text"], "no column c"),
        ] {
            let wrong = await ToolRun(["import", folder.path("t.tsv"), folder.path("out3")] + words)
            #expect(wrong.isRefused(naming: text), "\(wrong)")
        }
    }

    /// Makes a folder of CSV files, by their names.
    private func shop(in folder: ToolFolder, _ files: [String: String]) throws -> URL {
        let shop = folder.url.appending(path: "shop")
        try FileManager.default.createDirectory(at: shop, withIntermediateDirectories: true)
        for (name, text) in files { try write(text, "shop/\(name).csv", folder) }
        return shop
    }

    @Test func `a column of a CSV file refers to the file that is chosen`() async throws {
        let folder = try ToolFolder()
        let shop = try shop(
            in: folder,
            [
                "goods": "id,name\n1,a\n2,b\n3,c\n", "orders": "id,rep_id,by\n1,2,1\n2,1,1\n3,2,9\n",
                "people": "id,name\n1,Ann\n2,Bob\n",
            ])
        let plain = await ToolRun("import", shop.path, folder.path("plain"))
        #expect(plain.status == 0 && plain.errors.contains("could refer to people, goods or orders. Choose"), "\(plain)")
        let run = await ToolRun(
            "import", shop.path, folder.path("out"), "--references", "orders.rep_id=people", "--references", "BY=people",
            "--references", "by=people")
        #expect(run.status == 0 && !run.errors.contains("could refer"), "\(run)")
        #expect(run.lines.last?.hasSuffix("; 1 references to missing rows are lost") == true, "\(run)")
        #expect(await ToolRun("query", folder.path("out"), "orders", "rep.name = 'Bob'", "--count").output == "2\n")
        #expect(await ToolRun("query", folder.path("out"), "orders", "by.name = 'Ann' or by_ = 9", "--count").output == "3\n")
    }

    @Test(arguments: [
        ([], ["rep_id"], "rep_id: cannot be a reference: it does not name a column and a file. Write file.column=file"),
        ([], ["=a"], "=a: cannot be a reference"), ([], ["a="], "a=: cannot be a reference"),
        ([], ["rap_id=people"], "did you mean rep_id?"), ([], ["rep_id=peeple"], "did you mean people?"),
        ([], ["people.id=people"], "people.id cannot refer to people: it is that file's own key. Choose another column"),
        ([], ["rep_id=twins"], "no column can refer to twins: it has no key"),
        ([], ["rep_id=people", "rep_id=orders"], "rep_id: cannot refer to both people and orders. Choose one"),
        ([], ["rep_id=people", "REP_ID=orders"], "orders.rep_id cannot refer to both orders and people. Choose one"),
        (["--no-references"], ["rep_id=people"], "leave out --references or --no-references"),
        (["--exclude", "people"], ["rep_id=people"], "has no file people"),
    ])
    func `an impossible reference is refused with its reason`(
        _ others: [String], _ references: [String], _ message: String
    ) async throws {
        let folder = try ToolFolder()
        let shop = try shop(
            in: folder, ["orders": "id,rep_id\n1,2\n2,2\n", "people": "id\n1\n2\n", "twins": "a\n1\n1\n"])
        let options = others + references.flatMap { ["--references", $0] }
        let run = await ToolRun(["import", shop.path, folder.path("out")] + options)
        #expect(run.isRefused(naming: message), "\(run)")
        #expect(!FileManager.default.fileExists(atPath: folder.path("out")))
    }

    @Test func `references of a database are not chosen`() async throws {
        let folder = try ToolFolder()
        try makeDatabase(folder.path("a.sqlite"), "CREATE TABLE p (id INTEGER PRIMARY KEY, q);")
        let run = await ToolRun("import", folder.path("a.sqlite"), folder.path("out"), "--references", "p.q=p")
        #expect(run.isRefused(naming: "its references are known; leave out --references"), "\(run)")
    }

    /// Catches: an empty log and its index, which SQLite leaves beside a database that it opens for reading.
    @Test func `import of a database in WAL mode leaves its folder as it was`() async throws {
        let folder = try ToolFolder()
        try FileManager.default.createDirectory(atPath: folder.path("source"), withIntermediateDirectories: true)
        let source = folder.path("source/a.sqlite")
        try makeDatabase(source, "PRAGMA journal_mode = WAL; CREATE TABLE a (b); INSERT INTO a VALUES (1), (2);")
        for name in ["source/a.sqlite-wal", "source/a.sqlite-shm"] {
            try? FileManager.default.removeItem(atPath: folder.path(name))
        }
        let before = try folder.bytes("source/a.sqlite")
        #expect(before[18] == 2)
        let run = await ToolRun("import", source, folder.path("out"))
        #expect(run.status == 0, "\(run)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("source")) == ["a.sqlite"])
        #expect(try folder.bytes("source/a.sqlite") == before)
        #expect(await ToolRun("query", folder.path("out"), "a", "--count").output == "2\n")
    }

    @Test func `lost references are counted, and their keys are kept`() async throws {
        let folder = try ToolFolder()
        try makeDatabase(
            folder.path("a.sqlite"),
            """
            CREATE TABLE p (id INTEGER PRIMARY KEY);
            CREATE TABLE c (p_id INTEGER REFERENCES p);
            CREATE TABLE pp (l REFERENCES p, r REFERENCES p, PRIMARY KEY (l, r));
            INSERT INTO p VALUES (1);
            INSERT INTO c VALUES (1), (5);
            INSERT INTO pp VALUES (1, 1), (1, 7);
            """)
        let run = await ToolRun("import", folder.path("a.sqlite"), folder.path("out"))
        #expect(run.status == 0 && run.lines.last?.hasSuffix("; 2 references to missing rows are lost") == true, "\(run)")
        #expect(await ToolRun("query", folder.path("out"), "c", "p_id = 5", "--count").output == "1\n")
        let json = await ToolRun(
            "import", folder.path("a.sqlite"), folder.path("out2"), "--json", "--no-references", "--exclude", "pp")
        #expect(try json.object()["lostReferences"] as? Int == 0 && json.object()["pairs"] as? Int == 0)
        #expect(await ToolRun("query", folder.path("out2"), "c", "p_id = 5", "--count").output == "1\n")
        let wrong = await ToolRun("import", folder.path("a.sqlite"), folder.path("out3"), "--types", "id=text")
        #expect(wrong.isRefused(naming: "--types"), "\(wrong)")
    }

    @Test func `printed classes have the defaults, delete rules and constraints, and no name of a type`() async throws {
        let folder = try ToolFolder()
        try makeDatabase(
            folder.path("a.sqlite"),
            """
            CREATE TABLE Data (id INTEGER PRIMARY KEY, x BLOB NOT NULL, day DATE, count SMALLINT NOT NULL DEFAULT 7, word TEXT DEFAULT 'a"b');
            CREATE TABLE Part (id INTEGER PRIMARY KEY, data INTEGER REFERENCES Data ON DELETE CASCADE);
            INSERT INTO Data (x) VALUES (x'01');
            INSERT INTO Part VALUES (1, 1);
            """)
        let run = await ToolRun("import", folder.path("a.sqlite"), folder.path("out"), "--swift", folder.path("Models.swift"))
        #expect(run.status == 0, "\(run)")
        let classes = String(decoding: try folder.bytes("Models.swift"), as: UTF8.self)
        for text in [
            "@Model(renamedFrom: \"Data\") final class DataObject {", "@Attribute(.unique) var id: Int\n", "var x: Data\n",
            "var count: Int16 = 7\n", "var word: String? = \"a\\\"b\"\n", "var data: DataObject?\n",
            "@Relationship(deleteRule: .cascade, inverse: \\Part.data) var parts: [Part]",
        ] {
            #expect(classes.contains(text), "\(text) in \(classes)")
        }
    }

    // MARK: Real files

    private static let data = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().appending(path: "shared/data")
    private static let files = [
        "chinook.sqlite", "coredata/SampleModel_V2.sqlite", "coredata/SampleModel2_V2.sqlite", "coredata/SampleModel3_V1.sqlite",
        "coredata/books.sqlite", "coredata/swiftdata.store",
    ].filter { FileManager.default.fileExists(atPath: data.appending(path: $0).path) }

    @Test(.enabled(if: !files.isEmpty, "the folder of real files is missing"), arguments: files, ["lmdb", "sqlite"])
    func `a real file is imported, verified and exported to the same bytes`(_ file: String, _ kind: String) async throws {
        let folder = try ToolFolder()
        let out = folder.path("out")
        let run = await ToolRun("import", Self.data.appending(path: file).path, out, "--kind", kind)
        #expect(run.status == 0, "\(run)")
        #expect(await ToolRun("verify", out).status == 0)
        #expect(await ToolRun("export", out, folder.path("a.jsonl")).status == 0)
        let again = await ToolRun("import", folder.path("a.jsonl"), folder.path("again"), "--kind", kind)
        #expect(again.status == 0, "\(again)")
        #expect(await ToolRun("export", folder.path("again"), folder.path("b.jsonl")).status == 0)
        #expect(try folder.bytes("a.jsonl") == folder.bytes("b.jsonl"))
        // The store opens with the model of the data, to which its classes belong.
        let model = try Dataset.read(Self.data.appending(path: file).path).model()
        let container = try await folder.container("out", kind == "lmdb" ? .lmdb : .sqlite, model)
        try await container.close()
    }
}
