import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads a folder of CSV files. Each file becomes an entity, and each line an object. A column with the keys of another file
/// becomes a relationship. A file of nothing but pairs of keys becomes a many-to-many relationship.
public enum CSVFolder {
    /// The texts that mean null, besides the empty text, if the caller does not say which.
    public static let usualNullWords: Set<String> = ["NA"]

    /// Reads all files of a folder. Throws ``DatasetError`` if any file cannot be read.
    ///
    /// - Parameters:
    ///   - path: The folder.
    ///   - nullWords: The texts that mean null, besides the empty text.
    public static func read(_ path: String, nullWords: Set<String> = usualNullWords) throws -> Dataset {
        let names: [String]
        do { names = try FileManager.default.contentsOfDirectory(atPath: path) } catch {
            throw DatasetError("\(path): cannot be read; check that the folder exists and may be read")
        }
        let files = try names.filter { $0.lowercased().hasSuffix(".csv") }.sorted().map {
            try CSVFile(path: path + "/" + $0, nullWords: nullWords)
        }
        guard !files.isEmpty else { throw DatasetError("\(path): no file that ends in .csv") }
        return dataset(files, name: path.split(separator: "/").last.map(String.init) ?? path)
    }

    static func dataset(_ files: [CSVFile], name: String) -> Dataset {
        let inference = ReferenceInference(files)
        let entities = files.indices.filter { !inference.isJoin($0, files[$0]) }
        // The number of each file's table.
        let tables = Dictionary(uniqueKeysWithValues: entities.enumerated().map { ($1, $0) })
        var names = PropertyNames(tableCount: entities.count)
        var result = Dataset(name: name, tables: [])
        for (number, position) in entities.enumerated() {
            let file = files[position]
            let references = inference.references[position]
            var table = Table(name: file.name, attributes: [], rowCount: file.rowCount)
            var types: [String] = []
            for (column, columnName) in file.columns.enumerated() where !references.contains(where: { $0.column == column }) {
                let attribute = ColumnInference.column(names.take(columnName, in: number), file.cells[column])
                types.append("\(attribute.name) \(attribute.type.rawValue)\(attribute.isOptional ? "?" : "")")
                table.attributes.append(attribute)
            }
            result.notes.append("\(file.name): \(file.rowCount) rows: \(types.joined(separator: ", "))")
            result.tables.append(table)
        }
        for position in files.indices {
            let found = inference.references[position].map { FoundReference($0, in: files[position], files) }
            if let number = tables[position] {
                for reference in found {
                    add(
                        reference, of: files[position], number: number, files: files, tables: tables, names: &names,
                        result: &result)
                }
            } else {
                addPairs(found, of: files[position], files: files, tables: tables, names: &names, result: &result)
            }
        }
        return result
    }

    /// A reference with the row that each line refers to.
    private struct FoundReference {
        var column: String
        /// The file that is referred to.
        var destination: Int
        var key: String
        var rows: [Int32]
        /// The number of keys that no row has.
        var lost: Int

        init(_ reference: ReferenceInference.Reference, in file: CSVFile, _ files: [CSVFile]) {
            let target = files[reference.destination]
            let keys = ReferenceInference.rows(of: target.cells[reference.key])
            column = file.columns[reference.column]
            destination = reference.destination
            key = "\(target.name).\(target.columns[reference.key])"
            let cells = file.cells[reference.column]
            rows = cells.map { cell in cell.flatMap { keys[$0] } ?? TableReference.nobody }
            lost = zip(cells, rows).count { $0 != nil && $1 == TableReference.nobody }
        }
    }

    private static func add(
        _ reference: FoundReference, of file: CSVFile, number: Int, files: [CSVFile], tables: [Int: Int],
        names: inout PropertyNames, result: inout Dataset
    ) {
        guard let destination = tables[reference.destination] else { return }
        result.tables[number].references.append(
            TableReference(
                name: names.take(PropertyNames.relationship(forColumn: reference.column), in: number),
                inverse: names.take(PropertyNames.plural(ofTable: file.name), in: destination),
                destination: destination, rows: reference.rows))
        result.lostReferences += reference.lost
        result.notes.append(
            "\(file.name).\(reference.column) refers to \(reference.key)"
                + (reference.lost == 0 ? "" : "; \(reference.lost) references to nothing became null"))
    }

    private static func addPairs(
        _ ends: [FoundReference], of file: CSVFile, files: [CSVFile], tables: [Int: Int], names: inout PropertyNames,
        result: inout Dataset
    ) {
        guard ends.count == 2, let source = tables[ends[0].destination], let destination = tables[ends[1].destination] else {
            return
        }
        let (first, second) = (files[ends[0].destination].name, files[ends[1].destination].name)
        let pairs = zip(ends[0].rows, ends[1].rows).compactMap { source, destination in
            source < 0 || destination < 0 ? nil : Link.Pair(source: source, destination: destination)
        }
        result.lostReferences += file.rowCount - pairs.count
        result.links.append(
            Link(
                name: names.take(PropertyNames.plural(ofTable: second), in: source),
                inverse: names.take(PropertyNames.plural(ofTable: first), in: destination),
                source: source, destination: destination, pairs: pairs))
        result.notes.append("\(file.name): \(pairs.count) links between \(first) and \(second)")
    }
}
