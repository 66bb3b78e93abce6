import StrataSwiftData

/// A model that is also `Codable`, so that an array of it could be an attribute.
@Model final class Line: Codable {
    var text: String
    var talk: Talk?

    init(_ text: String) { self.text = text }

    required init(from decoder: any Decoder) throws { text = "decoded" }

    func encode(to encoder: any Encoder) throws {}
}

@Model final class Guest {
    var name: String
    var talk: Talk?

    init(_ name: String) { self.name = name }
}

@Model final class Speaker {
    var name: String
    var talk: Talk?

    init(_ name: String) { self.name = name }
}
