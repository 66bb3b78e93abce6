/// The columns of CSV files whose references the user chose.
struct ChosenReferences {
    /// For each file the reference of each chosen column.
    private var references: [[Int: ReferenceInference.Reference]]

    /// - Parameters:
    ///   - choices: The file that each column refers to, as in ``DatasetOptions/references``.
    ///   - files: The files of the input.
    ///   - keys: The key column of each file.
    ///   - input: The name of the input, for errors.
    /// - Throws: ``DatasetError`` if a choice names no column, or no file with keys, or contradicts another one.
    init(_ choices: [String: String], files: [CSVFile], keys: [Int?], input: String) throws {
        references = files.map { _ in [:] }
        if choices.isEmpty { return }
        let columns = files.flatMap { file in file.columns.flatMap { [$0, "\(file.name).\($0)"] } }
        let known = Set(columns.map { $0.lowercased() })
        var destinations: [(column: String, file: Int)] = []
        for (column, file) in choices.sorted(by: { $0.key < $1.key }) {
            guard known.contains(column.lowercased()) else {
                throw DatasetError("\(input): has no column \(column)\(Suggestion.hint(for: column, among: columns))")
            }
            destinations.append((column.lowercased(), try Self.destination(file, files: files, keys: keys, input: input)))
        }
        // The keys that would refer to themselves, and the choices for all columns of a name that have found another column.
        var ownKeys: [(column: String, file: CSVFile)] = []
        var used: Set<String> = []
        for (number, file) in files.enumerated() {
            for (column, name) in file.columns.enumerated() {
                let fullName = "\(file.name).\(name)"
                // As for types, a column that is named with its file does not take the choice for all columns of its name.
                let exact = destinations.filter { $0.column == fullName.lowercased() }
                let found = exact.isEmpty ? destinations.filter { $0.column == name.lowercased() } : exact
                guard let choice = found.first, let key = keys[choice.file] else { continue }
                if let other = found.first(where: { $0.file != choice.file })?.file {
                    throw DatasetError(
                        "\(input): \(fullName) cannot refer to both \(files[choice.file].name) and \(files[other].name). Choose one"
                    )
                }
                if choice.file == number, column == key {
                    ownKeys.append((choice.column, file))
                } else {
                    used.insert(choice.column)
                    references[number][column] = ReferenceInference.Reference(
                        column: column, destination: choice.file, key: key, isChosen: true)
                }
            }
        }
        if let (column, file) = ownKeys.first(where: { !used.contains($0.column) }) {
            throw DatasetError(
                "\(input): \(column) cannot refer to \(file.name): it is that file's own key. Choose another column")
        }
    }

    /// The reference that was chosen for a column.
    func reference(ofColumn column: Int, inFile file: Int) -> ReferenceInference.Reference? { references[file][column] }

    private static func destination(_ name: String, files: [CSVFile], keys: [Int?], input: String) throws -> Int {
        let names = files.map(\.name)
        guard let number = names.firstIndex(of: name) ?? names.firstIndex(where: { $0.lowercased() == name.lowercased() }) else {
            throw DatasetError("\(input): has no file \(name)\(Suggestion.hint(for: name, among: names))")
        }
        if keys[number] == nil {
            let reason =
                files[number].rowCount == 0
                ? "it has no rows" : "it has no key, which is a column with a value in every row and no value twice"
            throw DatasetError("\(input): no column can refer to \(names[number]): \(reason). Choose another file")
        }
        return number
    }
}
