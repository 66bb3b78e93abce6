/// The name of a keyed collection as a key of dictionaries, and in the order of a store.
///
/// Two names are equal if their bytes are, as in the stores. Texts are also equal if they only look alike, such as a letter with an
/// accent as one character and as two.
struct CollectionName: Hashable, Comparable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (a: Self, b: Self) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }
    static func < (a: Self, b: Self) -> Bool { a.text.utf8.lexicographicallyPrecedes(b.text.utf8) }

    // Texts with equal bytes have equal hashes.
    func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
