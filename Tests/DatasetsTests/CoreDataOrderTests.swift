import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import Datasets
@testable import SQLiteStore

/// Ordered relationships of Core Data files, by the columns of positions `Z_FOK_…`.
@Suite struct CoreDataOrderTests {
    /// Authors with books, and books with tags, both ends ordered. A person has children and parents.
    private static func model(hasMemberForOrder: Bool = false) -> CoreDataModelCache {
        var model = CoreDataModelCache(hasMemberForOrder: hasMemberForOrder)
        model.add("Author", [.attribute("name", 700), .toMany("books", to: "Book", inverse: "author", isOrdered: true)])
        model.add(
            "Book",
            [
                .attribute("title", 700), .toOne("author", to: "Author", inverse: "books"),
                .toMany("tags", to: "Tag", inverse: "books", isOrdered: true),
            ])
        model.add(
            "Tag",
            [
                .toMany("books", to: "Book", inverse: "tags", isOrdered: true),
                .toMany("children", to: "Tag", inverse: "parents", isOrdered: true),
                .toMany("parents", to: "Tag", inverse: "children"),
            ])
        return model
    }

    private static let entities = "INSERT INTO Z_PRIMARYKEY VALUES (1, 'Author', 0, 2), (2, 'Book', 0, 3), (3, 'Tag', 0, 2);\n"

    private static let tables = """
        CREATE TABLE ZAUTHOR (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR);
        CREATE TABLE ZBOOK (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZAUTHOR INTEGER, Z_FOK_AUTHOR INTEGER, ZTITLE VARCHAR);
        CREATE TABLE ZTAG (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZWORD VARCHAR);
        CREATE TABLE Z_2TAGS (Z_2BOOKS INTEGER, Z_3TAGS INTEGER, Z_FOK_2BOOKS INTEGER, Z_FOK_3TAGS INTEGER);
        CREATE TABLE Z_3CHILDREN (Z_3CHILDREN INTEGER, Z_3PARENTS INTEGER, Z_FOK_3CHILDREN INTEGER);
        CREATE INDEX ZBOOK_ZAUTHOR_INDEX ON ZBOOK (ZAUTHOR);
        INSERT INTO ZAUTHOR VALUES (1, 1, 1, 'Ann'), (2, 1, 1, 'Bob'), (3, 1, 1, 'Eve');
        INSERT INTO ZTAG VALUES (1, 3, 1, 'a'), (2, 3, 1, 'b'), (3, 3, 1, 'c');

        """

    private func dataset(_ sql: String, _ model: CoreDataModelCache? = model(), tables: String = tables) throws -> Dataset {
        let path = FileManager.default.temporaryDirectory.appending(path: "strata-core-data-\(UUID().uuidString).sqlite").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let cache = model.map { "INSERT INTO Z_MODELCACHE VALUES (\($0.sqlLiteral));\n" } ?? ""
        try SQLiteConnection(path: path, role: .creator).runScript(
            CoreDataGarage.header + cache + Self.entities + tables + sql)
        return try Dataset.readInMemoryAndInFiles(path)
    }

    /// Returns the members of each owner's list.
    private static func lists(_ owners: [Int32], _ members: [Int32], _ ranks: [Int32]?) throws -> [Int32: [Int32]] {
        let ranks = try #require(ranks)
        var lists: [Int32: [Int32]] = [:]
        for place in owners.indices.sorted(by: { ranks[$0] < ranks[$1] }) where owners[place] >= 0 {
            #expect(Int(ranks[place]) == lists[owners[place]]?.count ?? 0)
            lists[owners[place], default: []].append(members[place])
        }
        return lists
    }

    private static func books(_ data: Dataset) throws -> [Int32: [Int32]] {
        let author = try #require(data.tables[1].references.first)
        return try lists(author.rows, author.rows.indices.map { Int32($0) }, author.ranks)
    }

    private static func isOrdered(_ data: Dataset, _ entity: String, _ name: String) throws -> Bool? {
        try data.model().entity(named: entity)?.relationship(named: name)?.isOrdered
    }

    /// Catches: the order of one end given to the other, and orders that need a model.
    @Test(arguments: [true, false]) func `lists have the order of their positions, at either end`(_ hasModel: Bool) throws {
        let data = try dataset(
            """
            INSERT INTO ZBOOK VALUES (4, 2, 1, 1, 3072, 'x'), (5, 2, 1, 2, 1024, 'y'), (6, 2, 1, 1, 1024, 'z'), (7, 2, 1, NULL, NULL, 'w'),
                (8, 2, 1, 1, 2048, 'v');
            INSERT INTO Z_2TAGS VALUES (4, 1, 20, 7), (4, 2, 10, 6), (4, 3, 10, 5), (5, 1, 10, 1), (6, 1, 30, 1), (6, 2, 5, 1);
            INSERT INTO Z_3CHILDREN VALUES (1, 1, 9), (2, 1, 8), (3, 1, 7), (1, 2, 3), (3, 2, 4);
            """, hasModel ? Self.model() : nil)
        #expect(try Self.books(data) == [0: [2, 4, 0], 1: [1]])
        let tags = try #require(data.links.first { $0.source != $0.destination })
        let (books, words) = (tags.pairs.map(\.source), tags.pairs.map(\.destination))
        #expect(try Self.lists(books, words, tags.ranks) == [0: [2, 1, 0], 1: [0], 2: [0, 1]])
        #expect(try Self.lists(words, books, tags.inverseRanks) == [0: [1, 0, 2], 1: [2, 0], 2: [0]])
        // The column Z_3CHILDREN has children, so its end is the list of each parent.
        let family = try #require(data.links.first { $0.source == $0.destination })
        #expect(family.name == "parents" && family.inverse == "children" && family.ranks == nil)
        let (children, parents) = (family.pairs.map(\.source), family.pairs.map(\.destination))
        #expect(try Self.lists(parents, children, family.inverseRanks) == [0: [2, 1, 0], 1: [0, 2]])
        #expect(!data.tables.contains { $0.attributes.contains { $0.name.contains("Order") || $0.name.contains("fok") } })
        #expect(try Self.isOrdered(data, "Author", "books") == true && Self.isOrdered(data, "Book", "tags") == true)
        #expect(try Self.isOrdered(data, "Tag", "books") == true && Self.isOrdered(data, "Tag", "children") == true)
        #expect(try Self.isOrdered(data, "Tag", "parents") == false)
        #expect(data.notes.contains { $0.hasSuffix("Book.author refers to Author, in the order of Author.books") })
        #expect(data.notes.contains { $0.hasSuffix("in the order of Book.tags, in the order of Tag.books") })
    }

    /// Catches: a trap over a position, a lost member, and an order that depends on the order of the rows.
    @Test func `positions that are missing, equal, negative, huge or no numbers order by the primary key`() throws {
        let positions = [
            "NULL", "5", "5", "-9223372036854775808", "9223372036854775807", "9223372036854775806", "1e300", "-1e300", "'first'",
            "x'00'",
            "0.5", "-1", "5",
        ]
        let rows = positions.enumerated().map { "(\($0 + 1), 2, 1, 1, \($1), 't')" }.joined(separator: ",")
        let pairs = positions.enumerated().map { "(\($0 + 1), 1, \($1), NULL)" }.reversed().joined(separator: ",")
        let data = try dataset("INSERT INTO ZBOOK VALUES \(rows); INSERT INTO Z_2TAGS VALUES \(pairs);")
        let expected: [Int32] = [0, 8, 9, 7, 3, 11, 10, 1, 2, 12, 5, 4, 6]
        #expect(try Self.books(data) == [0: expected])
        let tags = try #require(data.links.first { $0.source != $0.destination })
        #expect(tags.pairs.count == positions.count)
        #expect(try Self.lists(tags.pairs.map(\.destination), tags.pairs.map(\.source), tags.inverseRanks) == [0: expected])
        _ = try data.model()
    }

    /// Catches: a pair that would have two positions, and positions that are taken from the wrong row once a row is left out.
    @Test func `pairs that occur twice are read once, and those that lead nowhere are left out`() throws {
        let data = try dataset(
            """
            INSERT INTO ZBOOK VALUES (1, 2, 1, 77, 1, 'x'), (2, 2, 1, 'Ann', 2, 'y'), (3, 2, 1, 1, 3, 'z');
            INSERT INTO Z_2TAGS VALUES (99, 1, 1, 1), (1, 1, 9, 3), (1, 1, 2, 1), (1, 99, 1, 1), (1, 2, 1, 2), (2, 1, 3, 1), ('x', NULL, 1, 1);
            """)
        #expect(try Self.books(data) == [0: [2]] && data.lostReferences == 5)
        let tags = try #require(data.links.first { $0.source != $0.destination })
        #expect(tags.pairs.map(\.source) == [0, 0, 1] && tags.pairs.map(\.destination) == [0, 1, 0])
        #expect(tags.ranks == [1, 0, 0] && tags.inverseRanks == [1, 0, 0])
    }

    /// Catches: a model whose order is believed only if the table has positions, in either form of the model.
    @Test(arguments: [true, false]) func `an order without a column of positions is that of the primary keys`(_ isOld: Bool)
        throws
    {
        let data = try dataset(
            """
            ALTER TABLE ZBOOK DROP COLUMN Z_FOK_AUTHOR;
            ALTER TABLE Z_2TAGS DROP COLUMN Z_FOK_3TAGS;
            INSERT INTO ZBOOK VALUES (5, 2, 1, 1, 'x'), (3, 2, 1, 1, 'y');
            INSERT INTO Z_2TAGS VALUES (5, 2, 1), (5, 1, 1), (3, 1, 2);
            """, Self.model(hasMemberForOrder: isOld))
        #expect(try Self.books(data) == [0: [0, 1]])
        let tags = try #require(data.links.first { $0.source != $0.destination })
        #expect(tags.ranks == [1, 0, 0] && tags.inverseRanks == [0, 0, 1])
        #expect(try Self.isOrdered(data, "Author", "books") == true && Self.isOrdered(data, "Book", "tags") == true)
        #expect(data.notes.count { $0.contains("of the primary keys, because there are no positions") } == 2)
    }

    /// Catches: positions that become an attribute again, and a trap over them.
    @Test func `positions beside no relationship are left out with a note`() throws {
        let data = try dataset(
            """
            ALTER TABLE ZBOOK ADD COLUMN Z_FOK_ INTEGER;
            ALTER TABLE ZBOOK ADD COLUMN Z_FOK_NOTHING INTEGER;
            ALTER TABLE ZBOOK ADD COLUMN Z_FOK_TITLE INTEGER;
            ALTER TABLE Z_2TAGS ADD COLUMN Z_FOK_9X INTEGER;
            CREATE TABLE Z_FOK_1 (Z_FOK_1 INTEGER, Z_FOK_2 INTEGER);
            INSERT INTO ZBOOK VALUES (1, 2, 1, 1, 1, 'x', 7, 8, 9);
            """)
        #expect(data.tables[1].attributes.map(\.name) == ["title"] && data.tables[1].references.map(\.name) == ["author"])
        #expect(data.notes.count { $0.contains("is left out: it has positions") } == 3)
        #expect(
            data.notes.contains {
                $0.contains("ZBOOK.Z_FOK_NOTHING is left out: it has positions, but ZNOTHING is no relationship")
            })
    }

    /// Catches: an order of an owner without members, and one without any objects, that is not declared.
    @Test func `relationships without members are ordered`() throws {
        let data = try dataset("")
        #expect(data.tables[1].references[0].ranks == [] && data.links.allSatisfy { $0.inverseRanks == [] })
        #expect(try Self.isOrdered(data, "Author", "books") == true && Self.isOrdered(data, "Tag", "children") == true)
    }

    /// A relationship that is its own inverse, whose second column is named `REFLEXIVE`.
    @Test func `a relationship to its own entity is ordered at the end whose column has positions`() throws {
        let data = try dataset(
            """
            CREATE TABLE Z_1FRIENDS (Z_1FRIENDS INTEGER, REFLEXIVE INTEGER, Z_FOK_REFLEXIVE INTEGER);
            INSERT INTO Z_1FRIENDS VALUES (1, 2, 9), (1, 3, 8), (2, 1, 1), (1, 1, 7);
            """, nil)
        let friends = try #require(data.links.first { $0.source == 0 && $0.destination == 0 })
        #expect(friends.ranks == [2, 1, 0, 0] && friends.inverseRanks == nil)
    }

    @Test func `random lists have the order of a plain sort`() throws {
        var random = SeededGenerator()
        for _ in 0..<Rounds.of(40, long: 2000) {
            let count = random.below(40)
            let owners = (0..<count).map { _ in Int32(random.below(4)) - 1 }
            let members = (0..<Int32(count)).shuffled(using: &random)
            let positions = (0..<count).map { _ -> Value in
                switch random.below(6) {
                case 0: .null
                case 1: .double(Double(random.below(8)) - 3.5)
                case 2: .int(.max - Int64(random.below(3)))
                default: .int(Int64(random.below(8)) - 4)
                }
            }
            let ranks = ListRanks.ranks(owners: owners, members: members, positions: positions)
            for owner in Set(owners) {
                let own = owners.indices.filter { owners[$0] == owner }
                func number(_ place: Int) -> Decimal {
                    switch positions[place] {
                    case .int(let number): Decimal(number)
                    case .double(let number): Decimal(number)
                    default: -1000
                    }
                }
                let plain = own.sorted { (number($0), members[$0]) < (number($1), members[$1]) }
                #expect(plain.map { Int(ranks[$0]) } == Array(own.indices))
            }
        }
    }

    /// Catches: ordering a list takes time in proportion to the square of its length. The test would then run for minutes.
    @Test func `a list of 200,000 members is ordered`() {
        let count: Int32 = 200_000
        let ranks = ListRanks.ranks(
            owners: Array(repeating: 0, count: Int(count)), members: Array(0..<count),
            positions: (0..<count).map { .int(-Int64($0)) })
        #expect(ranks == (0..<count).reversed())
    }

    /// Catches: positions that compare in another order than their numbers.
    @Test func `values of positions ascend with their numbers`() throws {
        var reference = TableReference(name: "a", inverse: "b", destination: 0, rows: Array(repeating: 0, count: 70_000) + [-1])
        reference.ranks = (0...70_000).map { Int32($0) }
        let bytes = (0..<70_000).compactMap { row -> Data? in
            if case .data(let data) = reference.position(ofRow: row) { data } else { nil }
        }
        #expect(bytes.count == 70_000 && zip(bytes, bytes.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) })
        #expect(bytes.allSatisfy { $0.count <= 5 } && reference.position(ofRow: 70_000) == .null)
    }
}
