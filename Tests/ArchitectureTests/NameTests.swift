import Testing

@Suite struct NameTests {
    /// Names that exclude nothing, so that any code could be put under them.
    private static let drawers: Set = [
        "Util", "Utils", "Utilities", "Helper", "Helpers", "Common", "Manager", "Core", "Misc", "Stuff",
    ]

    /// Splits a name in camel case, kebab case or snake case into words: `PageCore+Utils` has Page, Core, Utils.
    private static func words(_ name: String) -> [String] {
        name.matches(of: /[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])/).map { String($0.0).capitalized }
    }

    @Test func wordsOfANameAreFound() {
        #expect(Self.words("ManagedObjectContext+Save") == ["Managed", "Object", "Context", "Save"])
        #expect(Self.words("page-core_utils") == ["Page", "Core", "Utils"])
    }

    @Test func noFileFolderOrTypeHasANameThatExcludesNothing() {
        let declaration = /\b(?:class|struct|enum|actor|protocol|typealias)\s+(\w+)/
        for file in Repository.swiftFiles {
            let types = file.codeLines(with: "class", "struct", "enum", "actor", "protocol", "typealias").flatMap { _, line in
                line.matches(of: declaration).map { String($0.1) }
            }
            let places = file.path.split(separator: "/").map { String($0.replacing(".swift", with: "")) }
            for name in types + places {
                // Core Data is the name of another library.
                let found = Self.drawers.intersection(Self.words(name.replacing("CoreData", with: "")))
                #expect(found.isEmpty, "\(file.path): \(name) says nothing: \(found)")
            }
        }
    }

    @Test func placeholdersAreGone() {
        for file in Repository.swiftFiles where file.name == "Placeholder.swift" {
            let folder = file.path.dropLast("/Placeholder.swift".count)
            let others = Repository.swiftFiles.filter { $0.path.hasPrefix(folder + "/") && $0.path != file.path }
            #expect(others.isEmpty, "\(file.path) is not needed any more")
        }
    }
}
