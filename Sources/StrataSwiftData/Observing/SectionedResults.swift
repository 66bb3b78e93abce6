/// Objects with one title: see ``SectionedResults``.
///
/// ```swift
/// if let first = observer.sections?.first { print(first.title, first.map(\.name)) }
/// ```
public struct ResultsSection<Element: PersistentModel, SectionTitle: Hashable>: RandomAccessCollection, Identifiable {
    /// The value that the objects share.
    public let title: SectionTitle
    private let elements: ArraySlice<Element>

    init(_ title: SectionTitle, _ elements: ArraySlice<Element>) {
        self.title = title
        self.elements = elements
    }

    /// The ``title``.
    public var id: SectionTitle { title }
    /// The position of the first object, always 0.
    public var startIndex: Int { 0 }
    /// The number of objects.
    public var endIndex: Int { elements.count }
    /// Returns the object at a position.
    public subscript(position: Int) -> Element { elements[elements.startIndex + position] }
}

/// The objects of a ``ResultsObserver`` in sections, in the order in which each title appears first.
///
/// ```swift
/// for section in observer.sections ?? SectionedResults() {
///     print(section.title, section.count)
/// }
/// ```
public struct SectionedResults<Element: PersistentModel, SectionTitle: Hashable>: RandomAccessCollection {
    private var sections: [ResultsSection<Element, SectionTitle>] = []
    private var positions: [SectionTitle: Int] = [:]

    /// Creates a collection without sections.
    public init() {}

    /// Groups objects that are sorted by their titles. An object with the title of a section before the last one begins no second section.
    init(_ elements: [Element], by title: (Element) -> SectionTitle) {
        var groups: [(title: SectionTitle, elements: [Element])] = []
        for element in elements {
            let title = title(element)
            if let known = positions[title] {
                groups[known].elements.append(element)
            } else {
                positions[title] = groups.count
                groups.append((title, [element]))
            }
        }
        sections = groups.map { ResultsSection($0.title, $0.elements[...]) }
    }

    /// The titles in order.
    public var sectionTitles: [SectionTitle] { sections.map(\.title) }
    /// Returns the section with a title; nil if there is none. O(1).
    public subscript(sectionTitle title: SectionTitle) -> ResultsSection<Element, SectionTitle>? {
        positions[title].map { sections[$0] }
    }

    /// The position of the first section, always 0.
    public var startIndex: Int { 0 }
    /// The number of sections.
    public var endIndex: Int { sections.count }
    /// Returns the section at a position.
    public subscript(position: Int) -> ResultsSection<Element, SectionTitle> { sections[position] }
}
