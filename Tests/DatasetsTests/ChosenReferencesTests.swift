import StoreInterface
import StoreModel
import Testing

@testable import Datasets

/// References of CSV files that the user chooses, and the notes about columns for which there is a choice.
@Suite struct ChosenReferencesTests {
    private static func files(_ texts: [(name: String, text: String)]) throws -> [CSVFile] {
        try texts.map { try CSVFile(Array($0.text.utf8), file: "\($0.name).csv") }
    }

    /// Orders, with a column of numbers that both other files have as keys.
    private static let shop = [
        (name: "goods", text: "id,name\n1,a\n2,b\n3,c\n"),
        (name: "orders", text: "id,rep_id,origin\n1,2,x\n2,1,y\n3,,x\n4,2,z\n"),
        (name: "people", text: "id,boss,name\n1,2,Ann\n2,,Bob\n"),
    ]

    private static func shop(_ references: [String: String], makesReferences: Bool = true) throws -> Dataset {
        let options = DatasetOptions(references: references, makesReferences: makesReferences)
        return try CSVFolder.dataset(files(shop), name: "shop", options: options)
    }

    @Test(arguments: ["orders.rep_id", "ORDERS.Rep_Id", "rep_id"])
    func `a chosen column refers to the keys of the file, by either name and in any case`(_ column: String) throws {
        let data = try Self.shop([column: "People"])
        let orders = data.tables[1]
        #expect(orders.references.map(\.name) == ["rep"] && orders.references.map(\.inverse) == ["orders"])
        #expect(orders.references.map(\.destination) == [2] && orders.references[0].rows == [1, 0, -1, 1])
        #expect(orders.attributes.map(\.name) == ["id", "origin"] && data.lostReferences == 0)
        #expect(data.notes.contains("orders.rep_id refers to people.id"))
        _ = try data.model()
    }

    @Test func `several columns are chosen, also of the file itself, and a name with its file decides`() throws {
        let data = try Self.shop(["boss": "people", "rep_id": "goods", "orders.rep_id": "people"])
        #expect(data.tables[1].references.map(\.destination) == [2])
        #expect(data.tables[2].references.map(\.name) == ["boss"] && data.tables[2].references[0].rows == [1, -1])
        // A choice for every column of a name leaves out the key that it would refer to.
        let all = try Self.shop(["id": "goods"])
        #expect(all.tables[0].references.isEmpty)
        #expect(all.tables[1].references.first?.rows == [0, 1, 2, -1] && all.tables[2].references.first?.rows == [0, 1])
        #expect(all.tables[1].attributes.map(\.name) == ["rep_id", "origin", "id_"])
        _ = try all.model()
    }

    @Test func `values that are no keys become null, and the column is kept`() throws {
        let data = try Self.shop(["orders.origin": "goods", "people.name": "goods"])
        let orders = data.tables[1]
        #expect(orders.references.map(\.rows) == [[-1, -1, -1, -1]])
        #expect(orders.attribute(named: "origin_")?.values == ["x", "y", "x", "z"])
        #expect(data.lostReferences == 6)
        #expect(data.notes.contains("orders.origin refers to goods.id; 4 references to nothing became null"))
        #expect(data.notes.contains("orders.origin is kept as origin_, with all values"))
    }

    @Test func `a chosen reference is stronger than an inferred one, and can complete a file of pairs`() throws {
        let texts = [
            (name: "list", text: "id,title\n1,x\n2,y\n"), (name: "song", text: "id,title\n1,p\n2,q\n3,r\n"),
            (name: "entry", text: "list_id,what\n1,1\n1,3\n2,2\n"),
        ]
        let entity = try CSVFolder.dataset(Self.files(texts), name: "test")
        #expect(entity.tables.count == 3 && entity.links.isEmpty)
        func read(_ references: [String: String]) throws -> Dataset {
            try CSVFolder.dataset(Self.files(texts), name: "test", options: DatasetOptions(references: references))
        }
        let pairs = try read(["what": "song"])
        #expect(pairs.tables.map(\.name) == ["list", "song"])
        #expect(pairs.links.first?.pairs.map { [$0.source, $0.destination] } == [[0, 0], [0, 2], [1, 1]])
        let other = try read(["entry.list_id": "song"])
        #expect(other.tables[2].references.map(\.destination) == [1])
    }

    @Test(arguments: [
        (["orders.rap_id": "people"], "shop: has no column orders.rap_id; did you mean orders.rep_id?"),
        (["rep_id": "peeple"], "shop: has no file peeple; did you mean people? Known are goods, orders, people"),
        (["people.id": "people"], "shop: people.id cannot refer to people: it is that file's own key. Choose another column"),
        (
            ["name": "orders", "origin": "orders", "Rep_Id": "orders", "goods.id": "goods"],
            "shop: goods.id cannot refer to goods"
        ),
        (["rep_id": "people", "REP_ID": "goods"], "shop: orders.rep_id cannot refer to both goods and people. Choose one"),
    ])
    func `an impossible choice is an error with the thing, the reason and the remedy`(
        _ references: [String: String], _ message: String
    ) throws {
        let error = try #require(throws: DatasetError.self) { try Self.shop(references) }
        #expect(error.description.hasPrefix(message), "\(error)")
    }

    @Test func `a choice for all columns of a name is an error if the only one is the key itself`() throws {
        let files = try Self.files([(name: "people", text: "person,name\n1,Ann\n"), (name: "pets", text: "owner\n1\n1\n")])
        let error = try #require(throws: DatasetError.self) {
            try CSVFolder.dataset(files, name: "test", options: DatasetOptions(references: ["person": "people"]))
        }
        #expect(error.description.hasPrefix("test: person cannot refer to people: it is that file's own key"), "\(error)")
    }

    @Test func `a choice without references, or of a file without keys, is an error`() throws {
        let useless = try #require(throws: DatasetError.self) { try Self.shop(["rep_id": "people"], makesReferences: false) }
        #expect(useless.description.contains("leave out --references or --no-references"))
        for (text, reason) in [("a\n1\n1\n", "it has no key, which is a column with"), ("a\n", "it has no rows")] {
            let files = try Self.files([(name: "x", text: text), (name: "y", text: "n\n1\n")])
            let error = try #require(throws: DatasetError.self) {
                try CSVFolder.dataset(files, name: "test", options: DatasetOptions(references: ["y.n": "x"]))
            }
            #expect(error.description.hasPrefix("test: no column can refer to x: \(reason)"), "\(error)")
        }
    }

    /// Catches: a chosen reference that is left out because the file is so wide, without a word.
    @Test func `a chosen reference of a wide file is made, or is an error if other values need a column`() throws {
        let names = (1..<EntitySchema.maximumColumns).map { "c\($0)" } + ["who"]
        func read(_ who: String) throws -> Dataset {
            let line = names.dropLast().map { _ in "7.5" } + [who]
            let wide = "\(names.joined(separator: ","))\n\(line.joined(separator: ","))\n"
            let files = try Self.files([(name: "people", text: "id\n1\n2\n"), (name: "wide", text: wide)])
            return try CSVFolder.dataset(files, name: "test", options: DatasetOptions(references: ["who": "people"]))
        }
        #expect(try read("2").tables[1].references.map(\.rows) == [[1]])
        let error = try #require(throws: DatasetError.self) { try read("3") }
        #expect(error.description.contains("wide.who cannot refer to people.id: it has other values, and no room"), "\(error)")
    }

    // MARK: Notes

    @Test func `a note names the files whose keys have all values of a column that is named for a key, small files first`() throws
    {
        func note(_ column: String, _ values: [String], among counts: [Int]) throws -> [String] {
            let names = ["ash", "oak", "elm", "fir", "yew"]
            let others = zip(names, counts).map { name, count in
                (name: name, text: "id,note\n" + (0..<count).map { "\($0 + 1),x\n" }.joined())
            }
            let own = (name: "zoo", text: "\(column),code\n" + values.map { "\($0),x\n" }.joined())
            return try CSVFolder.dataset(Self.files(others + [own]), name: "test").notes.filter { $0.contains("could refer") }
        }
        let start = "zoo.keeperId stays an attribute, but could refer to"
        #expect(
            try note("keeperId", ["2", "1", "2", "1"], among: [2]) == [
                "\(start) ash. Choose one, for example with --references zoo.keeperId=ash"
            ])
        #expect(try note("keeperId", ["1", "1"], among: [9, 4]).first?.hasPrefix("\(start) oak or ash. ") == true)
        #expect(try note("keeperId", ["1", "1"], among: [9, 4, 4]).first?.hasPrefix("\(start) oak, elm or ash. ") == true)
        #expect(
            try note("keeperId", ["1", "1"], among: [9, 8, 7, 6, 5]).first?.hasPrefix("\(start) yew, fir, elm or 2 more. ")
                == true)
        // A value that is no key, a name that is none of a key, and no values.
        for (column, values) in [
            ("keeperId", ["1", "3", "1"]), ("paid", ["1", "1"]), ("PAID", ["1", "1"]), ("keeperId", ["", ""]),
        ] {
            #expect(try note(column, values, among: [2]) == [], "\(column)")
        }
        for column in ["keeper_id", "KEEPER_ID", "keeper id", "keeperID", "keeper2Id"] {
            #expect(try note(column, ["1", "1"], among: [2]).count == 1, "\(column)")
        }
    }

    @Test func `a note is about no column that refers to a file, and about no key that is not named for one`() throws {
        #expect(try !Self.shop(["rep_id": "people"]).notes.contains { $0.contains("could refer") })
        #expect(try Self.shop([:]).notes.contains { $0.contains("orders.rep_id stays an attribute, but could refer to people") })
        #expect(try !Self.shop([:], makesReferences: false).notes.contains { $0.contains("could refer") })
        let own = try Self.files([
            (name: "a", text: "id,b_id\n1,2\n2,2\n"), (name: "b", text: "Id\n0\n1\n"), (name: "c", text: "id\n1\n2\n"),
        ])
        #expect(
            try CSVFolder.dataset(own, name: "test").notes.contains {
                $0.hasPrefix("a.b_id stays an attribute, but could refer to c or a.")
            })
        let files = try Self.files([(name: "years", text: "year\n1\n2\n"), (name: "t", text: "x_id\n1\n1\n")])
        #expect(try !CSVFolder.dataset(files, name: "test").notes.contains { $0.contains("could refer") })
    }
}
