import Foundation
import StoreInterface
import StoreModel
import Testing

@testable import Datasets

/// Reading CSV: the rules of RFC 4180, null values, inferred types, and refused files.
@Suite struct CSVTests {
    private func file(_ text: String, _ name: String = "things.csv") throws -> CSVFile {
        try CSVFile(Array(text.utf8), file: name)
    }

    /// Catches: a header whose columns are each compared with all others, which takes hours for this one.
    @Test func aHeaderOfManyEmptyNamesIsRead() throws {
        let file = try file("column3,," + String(repeating: ",", count: 200_000) + "\n")
        #expect(file.columns.count == 200_003)
        #expect(file.columns.prefix(4) == ["column3", "column2", "column3_", "column4"])
    }

    @Test func quotedFieldsHoldCommasQuotesAndLineEnds() throws {
        let file = try file("a,b\r\n\"x,\"\"y\"\"\r\nz\",2\r\n")
        #expect(file.cells == [["x,\"y\"\r\nz"], ["2"]])
    }

    @Test func aFileNeedsNoLineEndAtItsEndAndMayBeginWithAByteOrderMark() throws {
        let file = try file("\u{FEFF}a,b\n1,2")
        #expect(file.columns == ["a", "b"])
        #expect(file.cells == [["1"], ["2"]])
    }

    @Test func emptyAndNAAreNullUnlessQuoted() throws {
        let file = try file("a,b\n,NA\n\"\",\"NA\"\n")
        #expect(file.cells == [[.null, ""], [.null, "NA"]])
    }

    @Test(arguments: [
        ("a,b\n1,2\n3\n", "things.csv:3: column 2: 1 fields, but the header names 2; add the missing fields"),
        ("a,b\n1,2,3\n", "things.csv:2: column 3: 3 fields, but the header names 2; quote fields that contain the delimiter"),
        ("a,b\n\"1\n2\",3\nx,\"open\n", "things.csv:4: column 2: a quoted field that never ends; close the quote"),
        ("a,b\n1,x\"y\n", "things.csv:2: column 2: a quote inside a field that is not quoted; quote the whole field"),
        ("a,b\n\"1\"x,2\n", "things.csv:2: column 1: text after a closing quote; double the quotes inside a field"),
        ("a,A\n1,2\n", "things.csv:1: column 2: the name A is taken by an earlier column"),
        ("", "things.csv:1: column 1: no header; the first line must name the columns"),
    ])
    func aMalformedLineIsNamedByFileLineAndColumn(text: String, message: String) throws {
        let error = try #require(throws: DatasetError.self) { try file(text) }
        #expect(error.description == message)
        #expect((error as any Error).localizedDescription == message)
    }

    @Test(arguments: [
        (["1", nil, "-30000"], ColumnType.int64, Value.int(1)),
        (["1", "9000000000"], .int64, .int(1)),
        (["1", "0.5"], .double, .double(1)),
        (["TRUE", "false"], .bool, .bool(true)),
        (["2001-01-02", "2013-01-01T10:00:00Z"], .date, .double(86_400)),
        (["007", "1"], .string, .string("007")),
        (["9E", "AA"], .string, .string("9E")),
        (["99999999999999999999999", "1"], .string, "99999999999999999999999"),
        // Codes: a number would have another text.
        (["12345678901234567890", "12345678901234567891"], .string, "12345678901234567890"),
        (["1.9", "1.10"], .string, "1.9"), (["1", "1.0"], .string, "1"), (["+1", "2"], .string, "+1"),
        (["-0", "1"], .string, "-0"), (["1e5", "2"], .string, "1e5"), (["1.", "2"], .string, "1."), ([".5"], .string, ".5"),
        (["-inf", "0.5"], .string, "-inf"), (["0.12345678901234567890"], .string, "0.12345678901234567890"),
        (["9007199254740993", "0.5"], .string, "9007199254740993"), (["1e999", "0.5"], .string, "1e999"),
        (["0.1e-999"], .string, "0.1e-999"), (["1.00", "1.0"], .string, "1.00"),
        // Numbers as R, pandas and tables of prices write them.
        (["41", "39.02", "1e3"], .double, .double(41)), (["41.0", "39.02", nil], .double, .double(41)),
        (["1.10", "2.50"], .double, .double(1.1)), (["48.053808600000004", "-80.697472200000007"], .double, 48.053808600000004),
        (["-0.0", "1.5"], .double, .double(-0.0)), (["0.0001", "12"], .double, .double(0.0001)),
        // Times that are finer than a date, and a second that a date does not have.
        (["2024-05-01T12:00:00.123456789Z", "2024-05-01T12:00:00.123456790Z"], .string, "2024-05-01T12:00:00.123456789Z"),
        (["2016-12-31T23:59:60Z"], .string, "2016-12-31T23:59:60Z"), (["2016-12-31 23:59:60"], .string, "2016-12-31 23:59:60"),
        (["2024-05-01T12:00:00.123456Z", "2024-05-01 12:00:00.500"], .date, .double(736_257_600.123456)),
        (["2024-05-01T12:00:00.000", "2024-05-01"], .date, .double(736_257_600)),
    ])
    func `a column has numbers only if no text is changed`(texts: [String?], type: ColumnType, first: Value) throws {
        let column = try ColumnInference.column("x", ValueColumn(texts.map { $0.map(Value.string) ?? .null }))
        #expect(column.type == type)
        #expect(column.values[0] == first)
        #expect(column.isOptional == texts.contains(nil))
    }

    @Test func columnsThatHoldKeysBecomeReferencesAndMissingRowsAreCounted() throws {
        let airports = try file("faa,name\nJFK,Kennedy\nEWR,Newark\nLGA,La Guardia\n", "airports.csv")
        let planes = try file("tailnum,year\nN1,2001\nN2,2002\n", "planes.csv")
        let flights = try file(
            "year,tailnum,origin\n2001,N1,JFK\n2002,N9,EWR\n2002,NA,JFK\n2001,N2,LGA\n", "flights.csv")
        let data = try CSVFolder.dataset([airports, flights, planes], name: "test")
        let table = data.tables[1]
        // One tail number is that of no plane, so that the column is kept.
        #expect(table.attributes.map(\.name) == ["year", "tailnum_"])
        #expect(table.attributes[1].values == ["N1", "N9", .null, "N2"])
        #expect(table.references.map(\.name) == ["tailnum", "origin"])
        #expect(table.references.map(\.destination) == [2, 0])
        #expect(table.references[0].rows == [0, -1, -1, 1])
        #expect(table.references[1].rows == [0, 1, 0, 2])
        #expect(data.lostReferences == 1)
    }

    @Test func `the words for null are chosen by the user`() throws {
        let file = try CSVFile(
            Array("a,b\nNULL,NA\n-,\"-\"\n".utf8), file: "things.csv",
            options: DatasetOptions(nullWords: ["NULL", "-"]))
        #expect(file.cells == [[.null, .null], ["NA", "-"]])
    }

    @Test func `numbers are references if their column is named for the file`() throws {
        let categories = try file("name,id\nfruit,1\nnuts,2\n", "categories.csv")
        let goods = try file("id,category_id,count\n1,1,2\n2,1,1\n3,2,1\n", "goods.csv")
        let data = try CSVFolder.dataset([categories, goods], name: "test")
        #expect(data.tables[1].references.map(\.name) == ["category"])
        #expect(data.tables[1].references[0].rows == [0, 0, 1])
        #expect(data.tables[1].attributes.map(\.name) == ["id", "count"])
    }

    @Test func `a parent is a reference into the same file`() throws {
        let folders = try file("id,name,parent_id\n10,a,\n11,b,10\n12,c,11\n", "folders.csv")
        let data = try CSVFolder.dataset([folders], name: "test")
        #expect(data.tables[0].references.map(\.name) == ["parent"])
        #expect(data.tables[0].references[0].rows == [-1, 0, 1])
    }

    @Test func `numbers under a name of no file stay numbers`() throws {
        let employees = try file("EmployeeId,Name\n1,a\n2,b\n", "Employee.csv")
        let customers = try file("CustomerId,SupportRepId\n1,2\n2,1\n3,2\n", "Customer.csv")
        let data = try CSVFolder.dataset([customers, employees], name: "test")
        #expect(data.tables.flatMap(\.references).isEmpty)
        #expect(data.tables[0].attributes.map(\.name) == ["CustomerId", "SupportRepId"])
        #expect(data.notes.contains { $0.hasPrefix("Customer.SupportRepId stays an attribute") })
    }

    @Test func `a file of pairs becomes a many-to-many relationship`() throws {
        let lists = try file("list_id,name\n1,a\n2,b\n", "lists.csv")
        let songs = try file("song_id,title\n7,x\n8,y\n", "songs.csv")
        let pairs = try file("list_id,song_id\n1,7\n1,8\n2,7\n2,9\n", "list_songs.csv")
        let data = try CSVFolder.dataset([pairs, lists, songs], name: "test")
        #expect(data.tables.map(\.name) == ["lists", "songs"])
        let link = try #require(data.links.first)
        #expect((link.source, link.destination) == (0, 1))
        #expect(link.pairs.map { [$0.source, $0.destination] } == [[0, 0], [0, 1], [1, 0]])
        #expect(data.lostReferences == 1)
    }

    @Test func `a file of pairs that occur twice stays an entity`() throws {
        let lists = try file("list_id,name\n1,a\n2,b\n", "lists.csv")
        let songs = try file("song_id,title\n7,x\n8,y\n", "songs.csv")
        let pairs = try file("list_id,song_id\n1,7\n1,7\n", "list_songs.csv")
        let data = try CSVFolder.dataset([lists, songs, pairs], name: "test")
        #expect(data.tables.count == 3)
        #expect(data.tables[2].references.count == 2)
    }

    @Test func `a column that refers to some rows keeps all of its values`() throws {
        let people = try file("id,name\n1,Ann\n2,Bob\n", "people.csv")
        let pets = try file("name,peopleId\nRex,1\nTom,2\nJim,3\nZoe,4\n", "pets.csv")
        let data = try CSVFolder.dataset([people, pets], name: "test")
        #expect(data.tables[1].references.map(\.name) == ["people"] && data.tables[1].references[0].rows == [0, 1, -1, -1])
        #expect(data.tables[1].attribute(named: "peopleId")?.values == [1, 2, 3, 4])
        #expect(data.notes.contains { $0.contains("2 references to nothing") })
        #expect(data.notes.contains { $0.contains("pets.peopleId is kept as peopleId") })
        let plain = try CSVFolder.dataset([people, pets], name: "test", options: DatasetOptions(makesReferences: false))
        #expect(plain.tables[1].references.isEmpty && plain.tables[1].attributes.map(\.name) == ["name", "peopleId"])
    }

    @Test func `a note counts the pairs that refer to nothing`() throws {
        let lists = try file("list_id,name\n1,a\n2,b\n", "lists.csv")
        let songs = try file("song_id,title\n7,x\n8,y\n", "songs.csv")
        let pairs = try file("list_id,song_id\n1,7\n1,8\n2,7\n2,9\n", "list_songs.csv")
        let data = try CSVFolder.dataset([pairs, lists, songs], name: "test")
        #expect(data.notes.contains { $0.hasPrefix("list_songs: 3 links") && $0.contains("1 rows that refer to nothing") })
    }

    @Test func `a column without a name gets one, and the delimiter can be chosen`() throws {
        let file = try CSVFile(Array(";a;column1\n1;x,y;2\n".utf8), file: "t.csv", options: DatasetOptions(delimiter: ";"))
        #expect(file.columns == ["column1_", "a", "column1"] && file.cells == [["1"], ["x,y"], ["2"]])
        #expect(file.notes == ["t: the column 1 has no name in the header and is named column1_"])
        #expect(try CSVFile(Array("a\tb\n1\t\"2\t3\"\n".utf8), file: "t.TSV").cells == [["1"], ["2\t3"]])
        #expect(throws: DatasetError.self) { try CSVFile([65], file: "t.csv", options: DatasetOptions(delimiter: "é")) }
    }

    @Test func `types of columns can be chosen, and wrong values and names are errors`() throws {
        let file = try file("zip,price,day\n100,1,2001-01-02\n200,2,\n")
        func made(_ types: [String: ColumnType]) throws -> Table {
            try CSVFolder.dataset([file], name: "things.csv", options: DatasetOptions(types: types)).tables[0]
        }
        #expect(try made(["ZIP": .string, "things.price": .double]).attributes.map(\.type) == [.string, .double, .date])
        #expect(try made(["price": .bool, "things.price": .string]).attributes[1].values == ["1", "2"])
        let wrong = try #require(throws: DatasetError.self) { try made(["price": .bool]) }
        #expect(wrong.description.contains("things: the object 2 has the value \"2\" in price, which is no bool"))
        let unknown = try #require(throws: DatasetError.self) { try made(["prise": .string]) }
        #expect(unknown.description.contains("did you mean price?"))
        // As a double it would be infinite, or zero.
        for text in ["1e999", "-1e999", "1e-999"] {
            let file = try self.file("price\n2\n\(text)\n")
            let error = try #require(throws: DatasetError.self) {
                try CSVFolder.dataset([file], name: "things.csv", options: DatasetOptions(types: ["price": .double]))
            }
            #expect(error.description.contains("the object 2 has the value \"\(text)\" in price, which is no double"))
        }
    }

    @Test func `a file with more columns than an entity has is left out with a note`() throws {
        let wide = try file((0...200).map { "c\($0)" }.joined(separator: ",") + "\n", "wide.csv")
        let data = try CSVFolder.dataset([wide, file("a\n1\n")], name: "test")
        #expect(data.tables.map(\.name) == ["things"] && data.notes[0].contains("wide is left out"))
        #expect(throws: DatasetError.self) { try CSVFolder.dataset([wide], name: "test") }
    }
}
