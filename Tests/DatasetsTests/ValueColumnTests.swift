import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import Datasets

/// Columns in memory and in temporary files.
@Suite struct ValueColumnTests {
    private static let folder = FileManager.default.temporaryDirectory

    private static func value(_ random: inout SeededGenerator) -> Value {
        switch Int.random(in: 0..<10, using: &random) {
        case 0: .null
        case 1: .bool(.random(using: &random))
        case 2: .int(.random(in: .min ... .max, using: &random))
        case 3: .uint(.random(in: .min ... .max, using: &random))
        case 4: .double(.random(in: -1e9...1e9, using: &random))
        case 5: .string(String(repeating: "é", count: .random(in: 0..<40, using: &random)))
        case 6: .data(Data((0..<Int.random(in: 0..<300, using: &random)).map { UInt8(truncatingIfNeeded: $0) }))
        case 7: .uuid(UUID())
        case 8: .reference(.random(in: 1..<101, using: &random))
        default: ""
        }
    }

    /// Catches: a place that is computed from the wrong file or value, and a tag that is read as another.
    @Test(arguments: [0, 1, 15, 16, 17, 1000])
    func `a column in files has the values that were added, at each row`(_ count: Int) throws {
        var random = SeededGenerator(test: "ValueColumnTests")
        let values = (0..<count).map { _ in Self.value(&random) }
        for bytesPerFile in [1, 100, 1 << 20] {
            let bytesInMemory = Int.random(in: 0..<200, using: &random)
            var builder = ValueColumnBuilder(
                ScratchSpace(folder: Self.folder, bytesInMemory: bytesInMemory, bytesPerFile: bytesPerFile))
            for value in values { try builder.append(value) }
            let column = try builder.finish()
            #expect(column.isSpilled || count < 20)
            #expect(Array(column) == values && column == ValueColumn(values))
            for row in values.indices.shuffled(using: &random).prefix(100) { #expect(column[row] == values[row]) }
            var changed = column
            for row in values.indices.prefix(3) { changed[row] = "changed" }
            #expect(changed.prefix(3).allSatisfy { $0 == "changed" })
            #expect(changed.dropFirst(3).elementsEqual(values.dropFirst(3)))
            #expect(Array(column) == values, "a copy was changed")
        }
    }

    @Test func `a column made of one in files is in files, and ends at the first value without another`() throws {
        var builder = ValueColumnBuilder(ScratchSpace(folder: Self.folder, bytesInMemory: 0))
        for number in 0..<100 { try builder.append(.int(Int64(number))) }
        let column = try builder.finish()
        let doubles = try #require(try column.mapped { if case .int(let number) = $0 { .double(Double(number)) } else { nil } })
        #expect(doubles.isSpilled && doubles[99] == .double(99))
        #expect(try column.mapped { $0 == .int(50) ? nil : $0 } == nil)
    }

    @Test func `a folder that cannot be written is named`() throws {
        var builder = ValueColumnBuilder(ScratchSpace(folder: URL(fileURLWithPath: "/nowhere/at/all"), bytesInMemory: 0))
        try builder.append(1)
        let error = #expect(throws: StoreError.self) { try builder.finish() }
        #expect(error?.message.contains("/nowhere/at/all") == true)
    }

    /// Catches: a record that is cut where a part of the file ends, and an error that comes from the cut.
    @Test func `a CSV file is read in parts as it is read whole`() throws {
        var random = SeededGenerator(test: "ValueColumnTests.parts")
        let pieces = ["a", ",", "\n", "\r\n", "\"", "\"\"", "é", "b,", "\"x,\ny\"", "1"]
        let path = Self.folder.appending(path: "strata-csv-\(UUID().uuidString).csv").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        for _ in 0..<300 {
            let count = Int.random(in: 0..<30, using: &random)
            let text = (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
            let bytes = (Bool.random(using: &random) ? [0xEF, 0xBB, 0xBF] : []) + Array(text.utf8)
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            let expected = Self.records { CSVParser(bytes, file: "t.csv") }
            for size in [1, 2, 3, 7, 1000] {
                let found = Self.records { try CSVParser(path: path, file: "t.csv", partSize: size) }
                #expect(found == expected, "parts of \(size) bytes of \(text.debugDescription)")
            }
        }
    }

    /// Returns the fields of each record, with its line, and the error at the end.
    private static func records(_ parser: () throws -> CSVParser) -> [String] {
        var found: [String] = []
        do {
            var parser = try parser()
            while let record = try parser.next() {
                let fields = record.fields.map { "\($0.text.debugDescription) \($0.wasQuoted)" }
                found.append("\(record.line): \(fields.joined(separator: ", "))")
            }
        } catch {
            found.append("\(error)")
        }
        return found
    }
}
