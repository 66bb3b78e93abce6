import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The files in which Core Data keeps large binary data, beside a store.
///
/// If an attribute allows external storage, its values begin with a marker: 1 before the data itself, 2 before the name of a file.
/// The name is a UUID as ASCII text that ends with a zero byte.
struct ExternalData {
    enum Form: Equatable {
        case inline(Data)
        case file(String)
    }

    /// The folder of the files.
    let folder: String

    /// - Parameter path: The file of the store.
    init(store path: String) {
        let url = URL(fileURLWithPath: path)
        let name = url.deletingPathExtension().lastPathComponent
        folder = url.deletingLastPathComponent().appendingPathComponent(".\(name)_SUPPORT/_EXTERNAL_DATA").path
    }

    /// Returns the content of a value; nil if it has no marker, or if the name after it is not one that Core Data gives. Such a name
    /// could lead out of the folder.
    static func form(of value: Data) -> Form? {
        switch value.first {
        case 1: return .inline(Data(value.dropFirst()))
        case 2:
            let name = value.dropFirst()
            guard name.count == 37, name.last == 0, let text = String(validating: name.dropLast(), as: UTF8.self),
                UUID(uuidString: text) != nil
            else { return nil }
            return .file(text)
        default: return nil
        }
    }

    /// Returns whether there is a file, and not a link or a folder.
    func contains(_ name: String) -> Bool {
        let attributes = try? FileManager.default.attributesOfItem(atPath: folder + "/" + name)
        return attributes?[.type] as? FileAttributeType == .typeRegular
    }

    /// Returns the bytes of a file; nil if it cannot be read.
    func bytes(_ name: String) -> Data? {
        contains(name) ? FileManager.default.contents(atPath: folder + "/" + name) : nil
    }
}

/// The forms of the values of a column.
private struct FormCount {
    /// Whether each value is null or has a form.
    private(set) var allFit = true
    private(set) var hasForms = false
    private(set) var fileCount = 0
    /// Whether a value names a file that exists.
    private(set) var namesFile = false

    init(_ values: ValueColumn, _ external: ExternalData) {
        for value in values where !value.isNull {
            guard case .data(let data) = value, let form = ExternalData.form(of: data) else {
                allFit = false
                continue
            }
            hasForms = true
            guard case .file(let file) = form else { continue }
            fileCount += 1
            namesFile = namesFile || external.contains(file)
        }
    }
}

extension CoreDataFile {
    /// Returns the values of a column of binary data without markers, and with the contents of files.
    ///
    /// The model says whether there are markers. Without a word from it, there are if all values have the form, and one names a file
    /// that exists.
    /// - Throws: ``DatasetError`` for a file that is missing, unless they are to be left out.
    mutating func withoutMarkers(_ position: Int, _ root: CoreDataRoot) throws -> ValueColumn {
        let values = root.cells[position]
        let column = root.table.columns[position]
        let property = root.columns[position].property
        guard column.declaredType == "BLOB" else { return values }
        if let property, case .attribute(let type) = property.kind, type != 1000, type != 1800 { return values }
        let name = "\(root.family.members[root.columns[position].owners[0]].name).\(property?.name ?? column.name)"
        let isMarked = property?.isExternal ?? false
        let forms = FormCount(values, external)
        guard isMarked || forms.allFit && forms.namesFile else {
            if property == nil, forms.allFit, forms.hasForms {
                result.notes.append(
                    "\(name): all values begin with the byte 1 or 2, which may mark data in separate files; they are kept as they are"
                )
            }
            return values
        }
        var kept = 0
        var row = 0
        let found = try values.mapped { value in
            defer { row += 1 }
            guard case .data(let data) = value else { return value }
            let object = "\(root.family.members[root.kinds[row]].name) \(root.key(of: row))"
            switch ExternalData.form(of: data) {
            case .inline(let data): return .data(data)
            case .file(let file): return try contents(file, "\(object).\(property?.name ?? column.name)")
            case nil:
                if data.first == 2 {
                    throw DatasetError(
                        "\(self.name): \(object).\(property?.name ?? column.name) names a file that Core Data cannot have written. "
                            + "Restore a copy of the store")
                }
                kept += 1
                return value
            }
        }
        if kept > 0 {
            result.notes.append("\(name): \(kept) values have no marker of external storage; they are kept as they are")
        }
        if forms.fileCount > 0 { result.notes.append("\(name): \(forms.fileCount) values are in separate files") }
        return found ?? values
    }

    private mutating func contents(_ file: String, _ place: String) throws -> Value {
        if let data = external.bytes(file) { return .data(data) }
        guard leavesOutMissingFiles else {
            throw DatasetError(
                "\(name): the file \(file) with the value of \(place) is missing in \(external.folder). Copy the folder with the store, or "
                    + "leave such values out with --without-missing-files")
        }
        result.notes.append("\(place) became null: its file \(file) is missing")
        return .null
    }
}
