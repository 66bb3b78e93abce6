import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The choices of a user who imports data.
public struct DatasetOptions: Sendable {
    /// The texts that mean null in CSV files, besides the empty text. nil means ``CSVFolder/usualNullWords``.
    public var nullWords: Set<String>?
    /// The character between the fields of CSV files, which is ASCII. nil means a tab in files that end in `.tsv`, and otherwise a comma.
    public var delimiter: Character?
    /// The types of columns of CSV files, by `column` or `file.column`, whatever their case. All other types are inferred.
    public var types: [String: ColumnType]
    /// The CSV files that columns refer to, by `column` or `file.column`, whatever their case. All other references are inferred. A column
    /// that is named without its file may be in several files. Values that are no key of the file become null, and the column is kept.
    public var references: [String: String]
    /// Whether keys become relationships. Otherwise all columns stay attributes.
    public var makesReferences: Bool
    /// The names of the tables or CSV files that are left out, whatever their case.
    public var excludedTables: Set<String>
    /// Whether values of a Core Data store whose files are missing become null. Otherwise they are an error.
    public var leavesOutMissingFiles: Bool
    /// The folder for temporary files of long columns, which have no names. It needs room for about twice the data. nil means that all
    /// columns stay in memory.
    public var scratchFolder: URL?
    /// The number of bytes of a column above which it is in a temporary file.
    var bytesInMemory = 1 << 20

    var scratch: ScratchSpace? { scratchFolder.map { ScratchSpace(folder: $0, bytesInMemory: bytesInMemory) } }

    /// Creates options, of which each has a usual value.
    public init(
        nullWords: Set<String>? = nil, delimiter: Character? = nil, types: [String: ColumnType] = [:],
        references: [String: String] = [:], makesReferences: Bool = true, excludedTables: Set<String> = [],
        leavesOutMissingFiles: Bool = false, scratchFolder: URL? = nil
    ) {
        self.nullWords = nullWords
        self.delimiter = delimiter
        self.types = types
        self.references = references
        self.makesReferences = makesReferences
        self.excludedTables = excludedTables
        self.leavesOutMissingFiles = leavesOutMissingFiles
        self.scratchFolder = scratchFolder
    }

    /// Adds a choice of the form `column=file` or `file.column=file` to ``references``.
    ///
    /// - Throws: ``DatasetError`` if the text has another form, or names another file for a column than before.
    public mutating func chooseReference(_ choice: String) throws {
        guard let sign = choice.lastIndex(of: "="), sign != choice.startIndex, choice.index(after: sign) != choice.endIndex
        else {
            throw DatasetError(
                "\(choice): cannot be a reference: it does not name a column and a file. Write file.column=file")
        }
        let (column, file) = (String(choice[..<sign]), String(choice[choice.index(after: sign)...]))
        if let other = references.updateValue(file, forKey: column), other.lowercased() != file.lowercased() {
            throw DatasetError("\(column): cannot refer to both \(other) and \(file). Choose one")
        }
    }

    /// Returns the type that was chosen for a column of a file.
    func type(of column: String, in file: String) -> ColumnType? {
        let names = ["\(file).\(column)".lowercased(), column.lowercased()]
        return names.lazy.compactMap { name in types.first { $0.key.lowercased() == name }?.value }.first
    }

    /// Returns the names of the tables that are not left out. Throws ``DatasetError`` if an excluded table does not exist.
    func included(_ tables: [String], of input: String) throws -> Set<String> {
        let names = Set(tables.map { $0.lowercased() })
        for excluded in excludedTables.sorted() where !names.contains(excluded.lowercased()) {
            throw DatasetError("\(input): has no table \(excluded)\(Suggestion.hint(for: excluded, among: tables))")
        }
        let left = Set(excludedTables.map { $0.lowercased() })
        return Set(tables.filter { !left.contains($0.lowercased()) })
    }

    /// Throws ``DatasetError`` if the types name a column that no file has.
    func checkTypes(_ files: [CSVFile], of input: String) throws {
        let columns = files.flatMap { file in file.columns.flatMap { [$0, "\(file.name).\($0)"] } }
        let known = Set(columns.map { $0.lowercased() })
        for name in types.keys.sorted() where !known.contains(name.lowercased()) {
            throw DatasetError("\(input): has no column \(name)\(Suggestion.hint(for: name, among: columns))")
        }
    }

    /// Throws ``DatasetError`` if references are chosen although none are made.
    func checkMakesReferences(_ input: String) throws {
        if !makesReferences, !references.isEmpty {
            throw DatasetError("\(input): has no references with --no-references; leave out --references or --no-references")
        }
    }

    /// Throws ``DatasetError`` if there are choices that are for CSV files only.
    func checkIsNotCSV(_ input: String) throws {
        if nullWords != nil {
            throw DatasetError("\(input): is no CSV file or folder of them, so it has no words for null; leave out --null-words")
        }
        if delimiter != nil {
            throw DatasetError("\(input): is no CSV file or folder of them, so it has no delimiter; leave out --delimiter")
        }
        if !types.isEmpty {
            throw DatasetError("\(input): is no CSV file or folder of them, so its types are known; leave out --types")
        }
        if !references.isEmpty {
            throw DatasetError("\(input): is no CSV file or folder of them, so its references are known; leave out --references")
        }
    }

    /// Throws ``DatasetError`` if there are choices about tables, which a store of Core Data does not have.
    func checkIsForCoreData(_ input: String) throws {
        if !excludedTables.isEmpty || !makesReferences {
            throw DatasetError(
                "\(input): is a store of Core Data, whose model decides; leave out --exclude and --no-references")
        }
    }
}
