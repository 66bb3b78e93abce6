import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads a folder of CSV files. Each file becomes an entity, and each line an object. A column with the keys of another file
/// becomes a relationship.
public enum CSVFolder {
    /// Reads all files of a folder. Throws ``DatasetError`` if any file cannot be read.
    public static func read(_ path: String) throws -> Dataset {
        let names: [String]
        do { names = try FileManager.default.contentsOfDirectory(atPath: path) } catch {
            throw DatasetError("\(path): cannot be read; check that the folder exists and may be read")
        }
        let files = try names.filter { $0.lowercased().hasSuffix(".csv") }.sorted().map { try CSVFile(path: path + "/" + $0) }
        guard !files.isEmpty else { throw DatasetError("\(path): no file that ends in .csv") }
        return dataset(files, name: path.split(separator: "/").last.map(String.init) ?? path)
    }

    static func dataset(_ files: [CSVFile], name: String) -> Dataset {
        let inference = ReferenceInference(files)
        var names = PropertyNames(tableCount: files.count)
        var result = Dataset(name: name, tables: [])
        for (number, file) in files.enumerated() {
            let references = inference.references[number]
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
        for number in files.indices {
            for reference in inference.references[number] { add(reference, number, files, &names, &result) }
        }
        return result
    }

    private static func add(
        _ reference: ReferenceInference.Reference, _ number: Int, _ files: [CSVFile], _ names: inout PropertyNames,
        _ result: inout Dataset
    ) {
        let file = files[number]
        let target = files[reference.destination]
        let keys = ReferenceInference.rows(of: target.cells[reference.key])
        var lost = 0
        let rows = file.cells[reference.column].map { cell -> Int32 in
            guard let cell else { return TableReference.nobody }
            if let row = keys[cell] { return row }
            lost += 1
            return TableReference.nobody
        }
        let column = file.columns[reference.column]
        result.tables[number].references.append(
            TableReference(
                name: names.take(PropertyNames.relationship(forColumn: column), in: number),
                inverse: names.take(PropertyNames.plural(ofTable: file.name), in: reference.destination),
                destination: reference.destination, rows: rows))
        result.lostReferences += lost
        result.notes.append(
            "\(file.name).\(column) refers to \(target.name).\(target.columns[reference.key])"
                + (lost == 0 ? "" : "; \(lost) references to nothing became null"))
    }
}
