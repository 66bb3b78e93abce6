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
/// Numbers under any other name stay numbers, because many files have keys from 1: `supportRepId` could mean any of them. That only one
/// file has all of the numbers as keys says nothing, because it may be the file with the most rows. The user chooses, and a note names
/// the files.
struct ReferenceInference {
    struct Reference {
        var column: Int
        var destination: Int
        var key: Int
        /// Whether the user chose the reference.
        var isChosen = false
    }

    /// The references of each file.
    private(set) var references: [[Reference]]
    /// Remarks about columns that are named for a key and could refer to a file, one line each.
    private(set) var notes: [String] = []

    private let files: [CSVFile]
    /// The key column of each file.
    private let keys: [Int?]
    /// For each file the row of each key.
    private let keyRows: [[String: Int32]]

    /// - Throws: ``DatasetError`` if a choice of the user is impossible.
    init(_ files: [CSVFile], of input: String, options: DatasetOptions) throws {
        let keys = files.map { Self.keyColumn($0) }
        let chosen = try ChosenReferences(options.references, files: files, keys: keys, input: input)
        self.files = files
        self.keys = keys
        keyRows = zip(files, keys).map { file, key in key.map { Self.rows(of: file.cells[$0]) } ?? [:] }
        references = Array(repeating: [], count: files.count)
        for (number, file) in files.enumerated() {
            for column in file.columns.indices {
                if let choice = chosen.reference(ofColumn: column, inFile: number) {
                    references[number].append(choice)
                } else if column != keys[number], file.mayBeKey(column) {
                    infer(column, number: number)
                }
            }
        }
    }

    /// Adds the reference that a column of a file is, or a note if it could be one.
    private mutating func infer(_ column: Int, number: Int) {
        let file = files[number]
        let name = file.columns[column]
        let distinct = Set(file.cells[column].lazy.compactMap(\.text))
        guard !distinct.isEmpty else { return }
        var best: (destination: Int, share: Double)?
        for (other, target) in files.enumerated() {
            guard let key = keys[other], other != number || Self.isNamedForParent(name) else { continue }
            let share = Double(distinct.count { keyRows[other][$0] != nil }) / Double(distinct.count)
            let needed = other == number || Self.isNamed(name, for: target.name, target.columns[key]) ? 0.5 : 0.9
            guard share >= needed, needed == 0.5 || Self.areWords(distinct) else { continue }
            if share > best?.share ?? 0 { best = (other, share) }
        }
        if let best, let key = keys[best.destination] {
            references[number].append(Reference(column: column, destination: best.destination, key: key))
        } else if Self.endsLikeKey(name) {
            addNote(about: name, of: number, distinct)
        }
    }

    /// Adds a note with the files that a column could refer to: those whose keys have a key's name and contain all of its values. Files
    /// with few keys come first, because the others contain any small number.
    private mutating func addNote(about name: String, of number: Int, _ values: Set<String>) {
        let column = "\(files[number].name).\(name)"
        let candidates = files.indices.filter { other in
            guard let key = keys[other], Self.endsLikeKey(files[other].columns[key]) else { return false }
            return values.allSatisfy { keyRows[other][$0] != nil }
        }.sorted {
            // Of files with as many keys the column's own comes last.
            (keyRows[$0].count, $0 == number ? 1 : 0, $0) < (keyRows[$1].count, $1 == number ? 1 : 0, $1)
        }.map { files[$0].name }
        guard let first = candidates.first else { return }
        var choices = Array(candidates.prefix(3))
        if candidates.count > 3 { choices.append("\(candidates.count - 3) more") }
        let list = choices.count == 1 ? first : choices.dropLast().joined(separator: ", ") + " or \(choices[choices.count - 1])"
        notes.append(
            "\(column) stays an attribute, but could refer to \(list). Choose one, for example with --references \(column)=\(first)"
        )
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

    /// Whether a name is `id`, or ends in it as a word: `supportRepId`, `support_rep_id`, but not `paid`.
    private static func endsLikeKey(_ name: String) -> Bool {
        guard name.lowercased().hasSuffix("id") else { return false }
        guard let before = name.dropLast(2).last else { return true }
        if !before.isLetter { return true }
        return before.isLowercase && name.dropLast().last == "I"
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
