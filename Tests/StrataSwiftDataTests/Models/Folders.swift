import StrataSwiftData

/// A tree: a model that has a relationship to itself, and optional collections.
@Model final class Folder {
    var id = UUID()
    @Attribute(originalName: "title") var name: String
    @Relationship(deleteRule: .cascade, inverse: \Folder.parent) var folders: [Folder]? = []
    var parent: Folder?
    @Relationship(deleteRule: .cascade) var files: [File]? = []

    init(name: String, parent: Folder? = nil) {
        self.name = name
        self.parent = parent
    }
}

/// A model that is also `Codable`, with a unique constraint over two properties.
@Model final class File: Codable {
    #Unique<File>([\.name, \.version])
    var name: String
    var version: Int
    var folder: Folder?

    init(name: String, version: Int = 1) {
        self.name = name
        self.version = version
    }

    private enum Keys: String, CodingKey { case name, version }

    required init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Keys.self)
        name = try values.decode(String.self, forKey: .name)
        version = try values.decode(Int.self, forKey: .version)
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Keys.self)
        try values.encode(name, forKey: .name)
        try values.encode(version, forKey: .version)
    }
}
