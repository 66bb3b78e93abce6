/// Finds the columns of CSV files that contain the keys of another file.
///
/// The key column of a file has a value in every row and no value twice. Of several such columns it is the first that is named for a
/// key (`id`, `planeId`, `plane_id`), else the first. Another column refers to it in these cases:
/// - Both columns have the same name, or the column is named for the file or for file and key (`planeId`, `plane_id`, `plane`).
///   At least half of its distinct values are keys.
/// - Both columns contain words (not numbers, dates or truth values), whatever their names. At least nine in ten of the
///   column's distinct values are keys.
/// - It is in the same file, and is named for a parent (`parent`, `parentId`, `reportsTo`). At least half of its distinct values
///   are keys.
///
/// A column with a text of more than 256 bytes neither has keys nor refers to them.
///
/// Numbers under any other name stay numbers, because many files have keys from 1: `supportRepId` could mean any of them.
struct ReferenceInference {
    struct Reference {
        var column: Int
        var destination: Int
        var key: Int
    }

    /// The references of each file.
    private(set) var references: [[Reference]]

    init(_ files: [CSVFile]) {
        let keys = files.map { Self.keyColumn($0) }
        let keySets = zip(files, keys).map { file, key in key.map { Self.rows(of: file.cells[$0]) } ?? [:] }
        references = Array(repeating: [], count: files.count)
        for (number, file) in files.enumerated() {
            for column in file.columns.indices where column != keys[number] && file.mayBeKey(column) {
                let distinct = Set(file.cells[column].lazy.compactMap(\.text))
                guard !distinct.isEmpty else { continue }
                var best: (destination: Int, share: Double)?
                for (other, target) in files.enumerated() {
                    guard let key = keys[other], other != number || Self.isNamedForParent(file.columns[column]) else { continue }
                    let share = Double(distinct.count { keySets[other][$0] != nil }) / Double(distinct.count)
                    let needed =
                        other == number || Self.isNamed(file.columns[column], for: target.name, target.columns[key]) ? 0.5 : 0.9
                    guard share >= needed, needed == 0.5 || Self.areWords(distinct) else { continue }
                    if share > best?.share ?? 0 { best = (other, share) }
                }
                if let best, let key = keys[best.destination] {
                    references[number].append(Reference(column: column, destination: best.destination, key: key))
                }
            }
        }
    }

    /// Whether a file contains nothing but pairs of keys, each pair once, so that it is a many-to-many relationship.
    func isJoin(_ number: Int, _ file: CSVFile) -> Bool {
        guard file.columns.count == 2, references[number].count == 2, file.rowCount > 0 else { return false }
        // A file that others refer to is an entity.
        if references.contains(where: { $0.contains { $0.destination == number } }) { return false }
        var pairs: Set<[String]> = []
        return zip(file.cells[0], file.cells[1]).allSatisfy { first, second in
            guard let first = first.text, let second = second.text else { return false }
            return pairs.insert([first, second]).inserted
        }
    }

    /// Returns the row of each value. A value that occurs twice has its first row.
    static func rows(of cells: ValueColumn) -> [String: Int32] {
        var rows: [String: Int32] = Dictionary(minimumCapacity: cells.count)
        for (row, cell) in cells.enumerated() {
            if let text = cell.text, rows[text] == nil { rows[text] = Int32(row) }
        }
        return rows
    }

    private static func keyColumn(_ file: CSVFile) -> Int? {
        guard file.rowCount > 0 else { return nil }
        let unique = file.columns.indices.filter { column in
            guard file.mayBeKey(column) else { return false }
            var seen: Set<String> = []
            return file.cells[column].allSatisfy { cell in cell.text.map { seen.insert($0).inserted } ?? false }
        }
        let keyNames = Set(["id"] + singulars(of: file.name).map { $0 + "id" })
        return unique.first { keyNames.contains(plain(file.columns[$0])) } ?? unique.first
    }

    private static func plain(_ name: String) -> String { name.lowercased().filter { $0 != "_" && $0 != "-" && $0 != " " } }

    /// Returns the name of a file and what may be its singular: `categories`, `categorie` and `category`.
    private static func singulars(of file: String) -> [String] {
        let file = plain(file)
        var names = [file]
        if file.hasSuffix("s") { names.append(String(file.dropLast())) }
        if file.hasSuffix("es") { names.append(String(file.dropLast(2))) }
        if file.hasSuffix("ies") { names.append(file.dropLast(3) + "y") }
        return names
    }

    private static func isNamedForParent(_ column: String) -> Bool {
        ["parent", "parentid", "reportsto"].contains(plain(column))
    }

    private static func isNamed(_ column: String, for file: String, _ key: String) -> Bool {
        let column = plain(column)
        let key = plain(key)
        if column == key { return key != "name" && key != "id" }
        return singulars(of: file).contains { [$0, $0 + "id", $0 + key].contains(column) }
    }

    private static func areWords(_ texts: Set<String>) -> Bool {
        !texts.contains { ColumnInference.double($0) != nil || ColumnInference.bool($0) != nil || DateText.seconds($0) != nil }
    }
}
