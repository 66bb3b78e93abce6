import ArgumentParser
import Datasets
import Foundation
import StoreInterface
import StoreModel

/// The options of `strata import` about data of other programs.
struct ImportOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The texts that mean null in CSV files of other programs, besides the empty text (default: NA).", valueName: "NA,-"))
    var nullWords: String?

    @Option(help: ArgumentHelp("The character between the fields of CSV files; tab for a tab.", valueName: ";"))
    var delimiter: String?

    @Option(
        help: ArgumentHelp(
            "The types of columns of CSV files: text, int, double, bool or date. A column may be named with its file: file.column.",
            valueName: "zip=text,file.price=double"))
    var types: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "The CSV file whose keys a column has, if that is not inferred. A column may be named with its file. May be repeated.",
            valueName: "file.column=file"))
    var references: [String] = []

    @Flag(help: "Keep the keys of other objects as attributes, in CSV and SQLite files.")
    var noReferences = false

    @Option(parsing: .singleValue, help: ArgumentHelp("Leave out a table or CSV file. May be repeated.", valueName: "table"))
    var exclude: [String] = []

    @Flag(help: "Make values of Core Data null if the files with them are missing.")
    var withoutMissingFiles = false

    private static let typeNames: [String: ColumnType] = [
        "text": .string, "string": .string, "int": .int64, "integer": .int64, "double": .double, "number": .double, "bool": .bool,
        "date": .date,
    ]

    /// The names of the options that were given.
    var given: [String] {
        let all: [(name: String, isGiven: Bool)] = [
            ("--null-words", nullWords != nil), ("--delimiter", delimiter != nil), ("--types", types != nil),
            ("--references", !references.isEmpty), ("--no-references", noReferences), ("--exclude", !exclude.isEmpty),
            ("--without-missing-files", withoutMissingFiles),
        ]
        return all.filter(\.isGiven).map(\.name)
    }

    /// The choices for the reader of data sets.
    /// - Throws: ``ToolError`` for a type or delimiter that does not exist, `DatasetError` for a reference that names no column or two files.
    func options() throws -> DatasetOptions {
        var options = DatasetOptions(
            nullWords: nullWords.map { Set($0.split(separator: ",").map(String.init)) }, makesReferences: !noReferences,
            excludedTables: Set(exclude), leavesOutMissingFiles: withoutMissingFiles)
        if let delimiter {
            let text = ["tab", "\\t"].contains(delimiter) ? "\t" : delimiter
            guard text.count == 1 else {
                throw ToolError.wrongInput("\(delimiter): cannot be a delimiter: it is not one character. Name one, or tab")
            }
            options.delimiter = text.first
        }
        for choice in types?.split(separator: ",") ?? [] {
            guard let sign = choice.lastIndex(of: "=") else {
                throw ToolError.wrongInput("\(choice): cannot be a type of a column: it has no =. Write column=text")
            }
            let name = String(choice[choice.index(after: sign)...])
            guard let type = Self.typeNames[name.lowercased()] else {
                let known = Self.typeNames.keys.sorted()
                throw ToolError.wrongInput("\(name): no such type\(Suggestion.hint(for: name, among: known))")
            }
            options.types[String(choice[..<sign])] = type
        }
        for choice in references { try options.chooseReference(choice) }
        return options
    }
}
