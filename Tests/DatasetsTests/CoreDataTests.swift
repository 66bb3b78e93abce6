import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import Datasets
@testable import SQLiteStore

/// Stores of Core Data and SwiftData: files in their format made here, and real ones where they are present.
@Suite struct CoreDataTests {
    private func dataset(_ sql: String) throws -> Dataset {
        let path = FileManager.default.temporaryDirectory.appending(path: "strata-core-data-\(UUID().uuidString).sqlite").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try SQLiteConnection(path: path, role: .creator).runScript(Self.header + sql)
        return try Dataset.readInMemoryAndInFiles(path)
    }

    private static let header = """
        CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);
        CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);

        """

    /// Without a model: authors, books with a sub-entity, and tags in a many-to-many relationship.
    private static let library = """
        INSERT INTO Z_PRIMARYKEY VALUES (1, 'Author', 0, 2), (2, 'Book', 0, 3), (3, 'Comic', 2, 0), (4, 'Tag', 0, 2), (16001, 'CHANGE', 0, 1);
        CREATE TABLE ZAUTHOR (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZAGE INTEGER, ZBORN TIMESTAMP, ZNAME VARCHAR, ZID BLOB);
        CREATE TABLE ZBOOK (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPAGES INTEGER, ZAUTHOR INTEGER, Z_FOK_AUTHOR INTEGER,
            ZPRICE DECIMAL, ZTITLE VARCHAR, ZCOVER BLOB);
        CREATE TABLE ZTAG (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZBOOK INTEGER, Z2_BOOK INTEGER, ZWORD VARCHAR);
        CREATE TABLE Z_2TAGS (Z_2BOOKS INTEGER, Z_4TAGS INTEGER, Z_FOK_2BOOKS INTEGER, PRIMARY KEY (Z_2BOOKS, Z_4TAGS));
        CREATE TABLE Z_1FRIENDS (Z_1FRIENDS INTEGER, REFLEXIVE INTEGER, PRIMARY KEY (Z_1FRIENDS, REFLEXIVE));
        CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER);
        CREATE INDEX ZBOOK_ZAUTHOR_INDEX ON ZBOOK (ZAUTHOR);
        INSERT INTO ZAUTHOR VALUES (5, 1, 1, 40, 0.5, 'Ann', x'000102030405060708090A0B0C0D0E0F'), (9, 1, 1, NULL, -86400, 'Bob', NULL);
        INSERT INTO ZBOOK VALUES (1, 2, 1, 100, 9, 2048, 9.99, 'One', x'01'), (2, 3, 1, 50, 9, 1024, 5, 'Two', NULL), (4, 2, 1, 7, NULL, NULL, 1, 'Three', x'02');
        INSERT INTO ZTAG VALUES (1, 4, 1, 2, 2, 'fun'), (2, 4, 1, 77, 2, 'sad');
        INSERT INTO Z_2TAGS VALUES (1, 1, 1), (4, 1, 2), (4, 2, 3);
        INSERT INTO Z_1FRIENDS VALUES (5, 9);
        """

    /// Catches: primary keys that become numbers without a word.
    @Test
    func `without a model, a column with an index whose numbers are keys of several entities stays one of numbers, and is noted`()
        throws
    {
        let data = try dataset(
            """
            INSERT INTO Z_PRIMARYKEY VALUES (1, 'Car', 0, 3), (2, 'Person', 0, 2);
            CREATE TABLE ZCAR (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZOWNER INTEGER, ZYEAR INTEGER, ZSEATS INTEGER);
            CREATE TABLE ZPERSON (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR);
            CREATE INDEX ZCAR_ZOWNER_INDEX ON ZCAR (ZOWNER);
            CREATE INDEX ZCAR_ZYEAR_INDEX ON ZCAR (ZYEAR);
            INSERT INTO ZCAR VALUES (1, 1, 1, 2, 1999, 1), (2, 1, 1, 1, 2001, 2), (3, 1, 1, NULL, 2002, 2);
            INSERT INTO ZPERSON VALUES (1, 2, 1, 'Ann'), (2, 2, 1, 'Bob');
            """)
        #expect(data.tables[0].attributes.map(\.name) == ["owner", "year", "seats"] && data.tables[0].references.isEmpty)
        let notes = data.notes.filter { $0.contains("may be a relationship") }
        #expect(notes.count == 1 && notes[0].contains("ZCAR.ZOWNER") && notes[0].contains("Car and of Person"), "\(data.notes)")
    }

    @Test func `without a model, types and relationships come from the tables`() throws {
        let data = try dataset(Self.library)
        #expect(data.tables.map(\.name) == ["Author", "Book", "Tag"])
        let (author, book, tag) = (data.tables[0], data.tables[1], data.tables[2])
        #expect(author.attributes.map(\.name) == ["age", "born", "name", "id"])
        #expect(author.attributes.map(\.type) == [.int64, .date, .string, .uuid])
        #expect(author.attributes[1].values == [.double(0.5), .double(-86_400)])
        let uuid = try #require(UUID(uuidString: "00010203-0405-0607-0809-0A0B0C0D0E0F"))
        #expect(author.attributes[3].values == [.uuid(uuid), .null])
        #expect(book.attributes.map(\.name) == ["pages", "price", "title", "cover"])
        #expect(book.members == ["Book", "Comic"] && book.kinds == [0, 1, 0])
        #expect(book.attributes[1].type == .double && book.attributes[3].type == .data)
        // The index shows the reference to the author.
        #expect(book.references.map(\.name) == ["author"] && book.references[0].rows == [1, 1, -1])
        #expect(book.references[0].ranks?.prefix(2) == [1, 0] && tag.references[0].ranks == nil)
        // The column with the number of the entity shows the reference to the book. Its primary key 2 is the second row.
        #expect(tag.references.map(\.name) == ["book"] && tag.references[0].rows == [1, -1])
        #expect(data.lostReferences == 1)
        let tags = try #require(data.links.first { $0.source != $0.destination })
        #expect(tags.name == "tags" && tags.inverse == "books" && tags.source == 1 && tags.destination == 2)
        #expect(
            tags.pairs == [.init(source: 0, destination: 0), .init(source: 2, destination: 0), .init(source: 2, destination: 1)])
        let friends = try #require(data.links.first { $0.source == $0.destination })
        #expect(friends.pairs == [.init(source: 0, destination: 1)] && friends.name != friends.inverse)
        #expect(tags.ranks == nil && tags.inverseRanks == [0, 1, 0] && friends.ranks == nil && friends.inverseRanks == nil)
        #expect(data.notes.contains { $0.contains("Book.author refers to Author, in the order of Author.books") })
        #expect(data.notes.contains { $0.contains("3 links between Book and Tag, in the order of Tag.books") })
        _ = try data.model()
    }

    @Test func `wrong numbers and names in the tables are no crash`() throws {
        // A circle of inheritance, an entity without a table, values of other types, and a cache that is no model.
        let data = try dataset(
            Self.library + """
                UPDATE Z_PRIMARYKEY SET Z_SUPER = 3 WHERE Z_ENT = 2;
                INSERT INTO Z_PRIMARYKEY VALUES (7, 'Lost', 0, 0), (8, 'Tag2', 99, 0);
                UPDATE ZAUTHOR SET ZAGE = 'old', ZBORN = 'then', ZID = 5;
                UPDATE ZBOOK SET ZAUTHOR = 'nobody' WHERE Z_PK = 1;
                CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB);
                INSERT INTO Z_MODELCACHE VALUES (x'9d5a077c0102030405');
                CREATE TABLE Z_ (a INTEGER, b INTEGER);
                CREATE TABLE Z_99X (Z_99A INTEGER, Z_4B INTEGER);
                """)
        #expect(data.tables.contains { $0.name == "Author" })
        #expect(throws: DatasetError.self) { try dataset("") }
    }

    @Test func `any bytes as a model are no crash`() {
        var random = SeededGenerator()
        var sound = Array("bplist00".utf8) + [UInt8](repeating: 0x51, count: 60)
        for _ in 0..<Rounds.of(3000, long: 100_000) {
            let bytes = (0..<random.below(200)).map { _ in UInt8(random.below(256)) }
            _ = Inflate.bytes(bytes, limit: 1 << 16)
            _ = CoreDataModel(cache: Data(bytes))
            sound[random.below(sound.count - 8) + 8] = UInt8(random.below(256))
            _ = KeyedArchive(sound)
        }
    }

    /// Catches: a reader that copies one large text into memory 200,000 times, because 200,000 objects of a small archive refer to it.
    @Test func `an archive that names one large object many times is refused`() {
        let count = 200_000
        let length = 100_000
        // A dictionary with the key `$objects` and an array of references to one text.
        var bytes = Array("bplist00".utf8)
        var offsets: [Int] = []
        func begin() { offsets.append(bytes.count) }
        func number(_ value: Int, size: Int) -> [UInt8] { (0..<size).reversed().map { UInt8(value >> (8 * $0) & 0xFF) } }
        begin()
        bytes += [0xD1, 1, 2]
        begin()
        bytes += [0x58] + Array("$objects".utf8)
        begin()
        bytes += [0xAF, 0x12] + number(count, size: 4) + [UInt8](repeating: 3, count: count)
        begin()
        bytes += [0x5F, 0x12] + number(length, size: 4) + [UInt8](repeating: 0x61, count: length)
        let table = bytes.count
        for offset in offsets { bytes += number(offset, size: 4) }
        bytes += [0, 0, 0, 0, 0, 0, 4, 1] + number(offsets.count, size: 8) + number(0, size: 8) + number(table, size: 8)
        #expect(KeyedArchive(bytes) == nil)
    }

    private func number(_ value: Int, size: Int) -> [UInt8] { (0..<size).reversed().map { UInt8(value >> (8 * $0) & 0xFF) } }

    /// Returns a property list of at most 64 KiB. References in its objects have two bytes.
    private func propertyList(_ objects: [[UInt8]]) -> [UInt8] {
        var bytes = Array("bplist00".utf8)
        var offsets: [Int] = []
        for object in objects {
            offsets.append(bytes.count)
            bytes += object
        }
        let table = bytes.count
        for offset in offsets { bytes += number(offset, size: 2) }
        return bytes + [0, 0, 0, 0, 0, 0, 2, 2] + number(offsets.count, size: 8) + number(0, size: 8) + number(table, size: 8)
    }

    private func text(_ text: String) -> [UInt8] {
        (text.utf8.count < 15 ? [0x50 | UInt8(text.utf8.count)] : [0x5F, 0x10, UInt8(text.utf8.count)]) + text.utf8
    }

    /// Catches: an overflow while the size of a reference is computed.
    @Test func `a reference of an impossible size is no crash`() {
        let reference: [UInt8] = [0x8F, 0x13, 0x7F] + [UInt8](repeating: 0xFF, count: 7)
        for member: [UInt8] in [reference, [0xA1, 0, 4]] {
            let objects = [[0xD1, 0, 1, 0, 2], text("$objects"), [0xA1, 0, 3], member, reference]
            #expect(KeyedArchive(propertyList(objects))?.objects.count == 1)
        }
    }

    /// Catches: a reader that makes a million names for each of many entities, because they share a list of lists.
    @Test func `a model whose entities share large constraints is refused`() {
        func list(of reference: UInt8, _ count: Int) -> [UInt8] {
            [0xAF, 0x11] + number(count, size: 2) + (0..<count).flatMap { _ in [0, reference] }
        }
        func model(entities: Int, count: Int) -> CoreDataModel? {
            let members: [UInt8] = [0, 3, 0, 4, 0, 5] + (0..<entities).flatMap { _ in [0, 6] as [UInt8] }
            let bytes = propertyList([
                [0xD1, 0, 1, 0, 2], text("$objects"), [0xAF, 0x10, UInt8(3 + entities)] + members, text("a"),
                [0xD1, 0, 7, 0, 11], [0xD1, 0, 7, 0, 12], [0xD3, 0, 13, 0, 14, 0, 15, 0, 8, 0, 8, 0, 10], text("NS.objects"),
                [0x80, 0], [0x80, 1], [0x80, 2], list(of: 8, count), list(of: 9, count), text("NSProperties"),
                text("NSEntityName"),
                text("NSUniqueTuples"),
            ])
            // One block of deflated data that is not compressed.
            return CoreDataModel(cache: Data([1, UInt8(bytes.count & 0xFF), UInt8(bytes.count >> 8), 0, 0] + bytes))
        }
        #expect(model(entities: 20, count: 10)?.entities.count == 20)
        #expect(model(entities: 20, count: 1000) == nil)
    }

    @Test func `deflated data is decompressed, up to a limit`() {
        // `zlib.compress(b"strata " * 20)` without its header and checksum, and a stored and a fixed block made by hand.
        let compressed: [UInt8] = [0x2B, 0x2E, 0x29, 0x4A, 0x2C, 0x49, 0x54, 0x28, 0x1E, 0x0C, 0x14, 0x00]
        let text = Array(String(repeating: "strata ", count: 20).utf8)
        #expect(Inflate.bytes(compressed, limit: 1000) == text)
        #expect(Inflate.bytes(compressed, limit: 100) == nil)
        #expect(Inflate.bytes([1, 3, 0, 0xFC, 0xFF, 65, 66, 67], limit: 10) == [65, 66, 67])
        #expect(Inflate.bytes([], limit: 10) == nil)
    }

    // MARK: Real files

    /// The folder of real files beside the repository.
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "shared/data/coredata")
    private static let hasFiles = FileManager.default.fileExists(atPath: folder.path)

    private func real(_ name: String) throws -> Dataset {
        try Dataset.readInMemoryAndInFiles(Self.folder.appending(path: name).path)
    }

    @Test(.enabled(if: hasFiles, "the folder of real Core Data files is missing"))
    func `a real store with inheritance has the names and types of its model`() throws {
        let data = try real("SampleModel_V2.sqlite")
        #expect(data.tables.map(\.name) == ["Car", "Person"] && data.tables.map(\.rowCount) == [125, 20])
        let car = data.tables[0]
        // Renamed in the model since the table of entities was written.
        #expect(car.members == ["Car", "SportCar", "LuxuryCar"] && car.subentities.map(\.superentity) == [0, 1])
        #expect((0...2).map { kind in car.kinds.count { $0 == kind } } == [115, 5, 5])
        #expect(car.attributes.allSatisfy { $0.owners == ($0.name == "isLimitedEdition" ? [2] : [0]) })
        #expect(
            car.attribute(named: "isLimitedEdition")?.type == .bool && car.attribute(named: "numberPlate")?.values[0] == "170")
        #expect(car.references.map(\.name) == ["owner"] && car.references[0].inverse == "cars")
        #expect(car.indexes.contains(.unique("numberPlate")) && car.indexes.contains(.index("maker", "numberPlate")))
        #expect(car.attribute(named: "isLimitedEdition")?.defaultValue == false)
        let owner = car.references[0].rows[0]
        #expect(owner == 16 && data.tables[1].attribute(named: "firstName")?.values[Int(owner)].isNull == false)
        #expect(data.tables[1].attribute(named: "updatedAt")?.values[0] == .double(639_503_569.638733))
        #expect(data.lostReferences == 0)
    }

    @Test(.enabled(if: hasFiles, "the folder of real Core Data files is missing"))
    func `a real store with UUIDs, decimals and transformables keeps every value`() throws {
        let data = try real("SampleModel2_V2.sqlite")
        #expect(
            data.tables.map(\.name) == ["Book", "Feedback", "Page", "Writer"] && data.tables.map(\.rowCount) == [3, 3, 119, 1])
        let book = data.tables[0]
        #expect(book.attributes.map(\.name).contains("publishedAt") && book.attribute(named: "frontCover")?.type == .data)
        #expect(
            book.attribute(named: "uniqueID")?.values[0]
                == UUID(uuidString: "173EF017-8551-4A76-AD07-19D8830FDC80").map { .uuid($0) })
        #expect(book.attribute(named: "price")?.values[1] == .double(10.11))
        #expect(data.tables[2].references[0].inverseDeleteRule == .cascade)
        #expect(data.tables[2].references.map(\.name) == ["book"] && data.tables[2].references[0].rows.count { $0 == 1 } == 99)
        #expect(data.tables[3].members == ["Writer", "Author"] && data.tables[3].kinds == [1])
        #expect(data.tables[3].isAbstract && data.tables[3].attribute(named: "alias")?.owners == [1])
    }

    @Test(.enabled(if: hasFiles, "the folder of real Core Data files is missing"))
    func `real stores of SwiftData and of Core Data's first years can be read`() throws {
        let swiftData = try real("swiftdata.store")
        #expect(swiftData.tables.map(\.name) == ["Component", "CraftingRecipe", "Item"])
        #expect(swiftData.tables[0].attribute(named: "id")?.type == .uuid)
        let recipe = swiftData.tables[1]
        // A one-to-one relationship is a reference at both ends, each the inverse of the other.
        #expect(recipe.references.map(\.name) == ["producedItem"] && recipe.references[0].inverse == "craftingRecipe")
        #expect(recipe.references[0].rows == [0, 2])
        #expect(try swiftData.model().entity(named: "Item")?.relationships.map(\.name) == ["craftingRecipe", "components"])
        #expect(swiftData.tables[2].indexes.map(\.kind) == [.unique])
        #expect(swiftData.tables[0].attribute(named: "count")?.defaultValue == 1)
        let books = try real("books.sqlite")
        #expect(books.tables.map(\.rowCount) == [11])
        #expect(books.tables[0].attributes.map(\.type) == [.date, .string, .string])
        #expect(books.tables[0].attribute(named: "title")?.values[0] == "Strata")
        #expect(try real("SampleModel3_V1.sqlite").tables.map(\.rowCount) == [12])
    }
}
