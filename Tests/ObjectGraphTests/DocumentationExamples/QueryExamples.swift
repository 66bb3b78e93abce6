#if canImport(SwiftUI)
    import ObjectGraph
    import StoreInterface
    import StoreModel
    import SwiftUI

    /// The example of SwiftUI views, compiled where SwiftUI exists. The architecture tests compare it with the documentation
    /// comment on every system.
    private enum QueryExamples {
        // Sources/ObjectGraph/LiveResults/Query+SwiftUI.swift
        struct FavoriteList: View {
            @Query(where: #Predicate<Track> { $0.playCount > 100 }, sortBy: [.init(\.title)]) var favorites: Results<Track>?

            var body: some View {
                if let favorites {
                    ForEach(Array(favorites), id: \.id) { track in Text(track.title) }
                }
            }
        }
        // end
    }
#endif
