/// Finds the columns of CSV files that contain the keys of another file.
///
/// The key column of a file is the first column that has a value in every row and no value twice. Another column refers to it
/// in two cases:
/// - Both columns have the same name, or the column is named for the file or for file and key (`planeId`, `plane_id`, `plane`).
///   At least half of its distinct values are keys.
/// - Both columns contain words (not numbers, dates or truth values), whatever their names. At least nine in ten of the
///   column's distinct values are keys.
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
            for column in file.columns.indices where column != keys[number] {
                let distinct = Set(file.cells[column].compactMap { $0 })
                guard !distinct.isEmpty else { continue }
                var best: (destination: Int, share: Double)?
                for (other, target) in files.enumerated() {
                    guard other != number, let key = keys[other] else { continue }
                    let share = Double(distinct.count { keySets[other][$0] != nil }) / Double(distinct.count)
                    let needed = Self.isNamed(file.columns[column], for: target.name, target.columns[key]) ? 0.5 : 0.9
                    guard share >= needed, needed == 0.5 || Self.areWords(distinct) else { continue }
                    if share > best?.share ?? 0 { best = (other, share) }
                }
                if let best, let key = keys[best.destination] {
                    references[number].append(Reference(column: column, destination: best.destination, key: key))
                }
            }
        }
    }

    /// Returns the row of each value. A value that occurs twice has its first row.
    static func rows(of cells: [String?]) -> [String: Int32] {
        var rows: [String: Int32] = Dictionary(minimumCapacity: cells.count)
        for (row, cell) in cells.enumerated() {
            if let cell, rows[cell] == nil { rows[cell] = Int32(row) }
        }
        return rows
    }

    private static func keyColumn(_ file: CSVFile) -> Int? {
        guard file.rowCount > 0 else { return nil }
        return file.columns.indices.first { column in
            var seen: Set<String> = []
            return file.cells[column].allSatisfy { cell in cell.map { seen.insert($0).inserted } ?? false }
        }
    }

    private static func isNamed(_ column: String, for file: String, _ key: String) -> Bool {
        func plain(_ text: String) -> String { text.lowercased().filter { $0 != "_" && $0 != "-" && $0 != " " } }
        let column = plain(column)
        let file = plain(file)
        let singular = file.hasSuffix("s") ? String(file.dropLast()) : file
        let key = plain(key)
        if column == key { return key != "name" && key != "id" }
        return [file, singular].contains { [$0, $0 + "id", $0 + key].contains(column) }
    }

    private static func areWords(_ texts: Set<String>) -> Bool {
        !texts.contains { ColumnInference.double($0) != nil || ColumnInference.bool($0) != nil || DateText.seconds($0) != nil }
    }
}
