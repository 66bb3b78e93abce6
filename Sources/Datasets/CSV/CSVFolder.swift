import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads a folder of CSV files, or one of them. Each file becomes an entity, and each line an object. A column with the keys of another
/// file becomes a relationship. A file of nothing but pairs of keys becomes a many-to-many relationship.
///
/// If a column also contains other values than keys, it is kept beside the relationship. ``DatasetOptions/references`` names columns that
/// refer to a file although neither their names nor their values tell which.
public enum CSVFolder {
    /// The texts that mean null, besides the empty text, if the caller does not say which.
    public static let usualNullWords: Set<String> = ["NA"]

    /// Reads one file, or all files of a folder that end in `.csv` or `.tsv`. Throws ``DatasetError`` if any file cannot be read.
    ///
    /// - Parameters:
    ///   - path: The folder or file.
    ///   - options: The user's choices.
    public static func read(_ path: String, options: DatasetOptions = DatasetOptions()) throws -> Dataset {
        var isFolder = false
        _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
        let name = path.split(separator: "/").last.map(String.init) ?? path
        guard isFolder else {
            let table = CSVFile.hasEnding(name) ? String(name.dropLast(4)) : name
            guard try options.included([table], of: path).contains(table) else { throw allExcluded(path) }
            return try dataset([CSVFile(path: path, options: options)], name: name, options: options)
        }
        let names: [String]
        do { names = try FileManager.default.contentsOfDirectory(atPath: path) } catch {
            throw DatasetError("\(path): cannot be read; check that the folder exists and may be read")
        }
        let files = names.filter(CSVFile.hasEnding).sorted()
        let included = try options.included(files.map { String($0.dropLast(4)) }, of: path)
        if included.isEmpty, !files.isEmpty { throw allExcluded(path) }
        let read = try files.filter { included.contains(String($0.dropLast(4))) }.map {
            try CSVFile(path: path + "/" + $0, options: options)
        }
        guard !read.isEmpty else {
            throw DatasetError("\(path): has no file that ends in .csv or .tsv. Name a folder that has one")
        }
        return try dataset(read, name: name, options: options)
    }

    private static func allExcluded(_ path: String) -> DatasetError {
        DatasetError("\(path): has no other table than those that are excluded; leave out --exclude")
    }

    static func dataset(_ files: [CSVFile], name: String, options: DatasetOptions = DatasetOptions()) throws -> Dataset {
        try options.checkTypes(files, of: name)
        var result = Dataset(name: name, tables: [])
        let fitting = files.filter { $0.columns.count <= EntitySchema.maximumColumns }
        for file in files where file.columns.count > EntitySchema.maximumColumns {
            result.notes.append(
                "\(file.name) is left out: it has \(file.columns.count) columns, and an entity at most \(EntitySchema.maximumColumns)"
            )
        }
        guard !fitting.isEmpty else { throw DatasetError("\(name): \(result.notes.joined(separator: "; "))") }
        var reader = try CSVReader(fitting, options: options, result: result)
        return try reader.dataset()
    }
}

/// Makes a data set of the content of CSV files.
private struct CSVReader {
    /// A reference with the row that each line refers to.
    private struct Reference {
        var column: Int
        /// The file that is referred to.
        var destination: Int
        var key: String
        var rows: [Int32]
        /// The number of values that no row has as its key.
        var lost: Int
        /// Whether the user chose the reference.
        var isChosen: Bool

        init(_ reference: ReferenceInference.Reference, in file: CSVFile, _ files: [CSVFile]) {
            let target = files[reference.destination]
            let keys = ReferenceInference.rows(of: target.cells[reference.key])
            column = reference.column
            destination = reference.destination
            isChosen = reference.isChosen
            key = "\(target.name).\(target.columns[reference.key])"
            let cells = file.cells[reference.column]
            rows = cells.map { cell in cell.text.flatMap { keys[$0] } ?? TableReference.nobody }
            lost = zip(cells, rows).count { !$0.isNull && $1 == TableReference.nobody }
        }
    }

    private let files: [CSVFile]
    private let options: DatasetOptions
    /// The references of each file.
    private let references: [[Reference]]
    /// Remarks about columns that could be references, one line each.
    private let notes: [String]
    /// The files that are no many-to-many relationships.
    private let entities: [Int]
    /// The number of each file's table.
    private let tables: [Int: Int]
    private var names: PropertyNames
    private var result: Dataset

    init(_ files: [CSVFile], options: DatasetOptions, result: Dataset) throws {
        try options.checkMakesReferences(result.name)
        let inference = options.makesReferences ? try ReferenceInference(files, of: result.name, options: options) : nil
        self.files = files
        self.options = options
        self.result = result
        notes = inference?.notes ?? []
        references = try files.indices.map { number in
            let found = (inference?.references[number] ?? []).map { Reference($0, in: files[number], files) }
            // There must be room for the column beside the reference.
            let isWide = files[number].columns.count + found.count > EntitySchema.maximumColumns
            if isWide, let refused = found.first(where: { $0.isChosen && $0.lost > 0 }) {
                throw DatasetError(
                    "\(result.name): \(files[number].name).\(files[number].columns[refused.column]) cannot refer to \(refused.key): "
                        + "it has other values, and no room for a column with them beside the reference. Leave it out of --references"
                )
            }
            return isWide ? found.filter { $0.lost == 0 } : found
        }
        let references = references
        entities = files.indices.filter { references[$0].count != 2 || inference?.isJoin($0, files[$0]) != true }
        tables = Dictionary(uniqueKeysWithValues: entities.enumerated().map { ($1, $0) })
        names = PropertyNames(tableCount: entities.count)
    }

    mutating func dataset() throws -> Dataset {
        for file in files { result.notes += file.notes }
        for (number, position) in entities.enumerated() {
            let file = files[position]
            result.tables.append(Table(name: file.name, attributes: [], rowCount: file.rowCount))
            for column in file.columns.indices where !references[position].contains(where: { $0.column == column }) {
                try addAttribute(column, of: file, number: number)
            }
            let types = result.tables[number].attributes.map { "\($0.name) \($0.type.rawValue)\($0.isOptional ? "?" : "")" }
            result.notes.append("\(file.name): \(file.rowCount) rows: \(types.joined(separator: ", "))")
        }
        for position in files.indices {
            if let number = tables[position] {
                for reference in references[position] { add(reference, of: files[position], number: number) }
            } else {
                addPairs(references[position], of: files[position])
            }
        }
        result.notes += notes
        // After all other names, which do not depend on values that are no keys.
        for (number, position) in entities.enumerated() {
            for reference in references[position] where reference.lost > 0 {
                try addAttribute(reference.column, of: files[position], number: number)
                result.notes.append(
                    "\(files[position].name).\(files[position].columns[reference.column]) is kept as "
                        + "\(result.tables[number].attributes.last?.name ?? ""), with all values")
            }
        }
        return result
    }

    private mutating func addAttribute(_ column: Int, of file: CSVFile, number: Int) throws {
        let name = names.take(file.columns[column], in: number)
        let attribute =
            if let type = options.type(of: file.columns[column], in: file.name) {
                try ColumnInference.column(name, file.cells[column], type: type, file: file.name)
            } else {
                try ColumnInference.column(name, file.cells[column])
            }
        result.tables[number].attributes.append(attribute)
    }

    private mutating func add(_ reference: Reference, of file: CSVFile, number: Int) {
        guard let destination = tables[reference.destination] else { return }
        let column = file.columns[reference.column]
        result.tables[number].references.append(
            TableReference(
                name: names.take(PropertyNames.relationship(forColumn: column), in: number),
                inverse: names.take(PropertyNames.plural(ofTable: file.name), in: destination),
                destination: destination, rows: reference.rows))
        result.lostReferences += reference.lost
        result.notes.append(
            "\(file.name).\(column) refers to \(reference.key)"
                + (reference.lost == 0 ? "" : "; \(reference.lost) references to nothing became null"))
    }

    private mutating func addPairs(_ ends: [Reference], of file: CSVFile) {
        guard ends.count == 2, let source = tables[ends[0].destination], let destination = tables[ends[1].destination] else {
            return
        }
        let (first, second) = (files[ends[0].destination].name, files[ends[1].destination].name)
        let pairs = zip(ends[0].rows, ends[1].rows).compactMap { source, destination in
            source < 0 || destination < 0 ? nil : Link.Pair(source: source, destination: destination)
        }
        let lost = file.rowCount - pairs.count
        result.lostReferences += lost
        result.links.append(
            Link(
                name: names.take(PropertyNames.plural(ofTable: second), in: source),
                inverse: names.take(PropertyNames.plural(ofTable: first), in: destination),
                source: source, destination: destination, pairs: pairs))
        result.notes.append(
            "\(file.name): \(pairs.count) links between \(first) and \(second)"
                + (lost == 0 ? "" : "; \(lost) rows that refer to nothing are left out"))
    }
}
