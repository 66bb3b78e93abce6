import StrataSwiftData

// A model whose relationships name inverses in classes of another file. The name of this file comes before that of the other, Lines.swift:
// in the other order, or in one file, the compiler has found the conformances of those classes before it needs them here.

@Model final class Talk {
    var name: String = "untitled"
    @Relationship(deleteRule: .cascade, inverse: \Line.talk) var lines: [Line] = []
    @Relationship(inverse: \Guest.talk) var guests: [Guest]? = []
    @Relationship(inverse: \Speaker.talk) var speakers: Set<Speaker> = []
    var opening: Line?
    var others: [Line] = []

    init() {}
}
