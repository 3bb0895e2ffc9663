"""Checksums (sha256) of the published files that are pinned, by kind and name."""

from collections.abc import Mapping

from sgmcmc_verification.targets.posteriordb.files import Kind

SHA256: Mapping[Kind, Mapping[str, str]] = {
    "posterior": {
        "arK-arK": "b1875b9c423623bab2193adde1dd855f760537a698823b23c7762169a4021b9f",
        "earnings-logearn_interaction": "b5c0dffd2e17e4a3ac1a467c44decdf5c0c210e9c00f110cb79f5097924fe8d3",
        "eight_schools-eight_schools_centered": "d7f70a3138629d74a20890142ac6737e5bcf8d70c0221cf1cfe2a4470b3ef7cc",
        "eight_schools-eight_schools_noncentered": "d80278a50b8423fe605ed4afb40c5d638d72e559385b7b4578b67dc3f4f17f79",
        "kidiq-kidscore_interaction": "81bb7e9e999b3bff79fe157e3b334c4c6c06367fb9413d67f368123824c30370",
        "kidiq-kidscore_momhsiq": "e90d9437fe59526f0c4195518f8a5d7f4d643697fa1f94877a53f336cac598b7",
        "kidiq-kidscore_momiq": "e4e6d666cbf0afead1d98769bb695e9dd3d62ccb964c4d1e0e4705f64f5ea8fe",
        "kilpisjarvi_mod-kilpisjarvi": "cfd1e924eca389d91dccff5b5a682e6ab254f49426746357b19c1519ee40bcae",
        "low_dim_gauss_mix-low_dim_gauss_mix": "deac2d6d6b4fe746821c9acc58c4fe9e2deb07537f9790d7d8f55c85acf019a3",
        "nes2000-nes": "48641f834c1e22a26048f0d629ab690db14e37cedc3d9b6ea87662bb5e13de55",
        "sblrc-blr": "7ffa016f31c8bab0ef0a1be2d5d876be27cc0b337f30c4a9d063caa482f6fe6a",
    },
    "data": {
        "arK": "6f2acbacb04655927bfc9173c42e51fc330bf08c6184242a62b7e39c22abe410",
        "earnings": "06a67aa61a99d59aee057486dae51ffad6b4f887e7f8f17733739cf893af312f",
        "eight_schools": "8e37cc01fe05b0e1779255e9bd386261f3d61daf7f75f02f72f38cdc9750531c",
        "kidiq": "16d341a99ec8178231eab660d8fda084a44145f6a241daf35276d0192d13b92d",
        "kilpisjarvi_mod": "232e8c55bbe5c07b79b0b28c92917f71711c713579292a2f40a50bda279d968e",
        "low_dim_gauss_mix": "9b5ea284321417a7816b0426a0c96788a6824e6ceb4ec4ecd89493779720b8f9",
        "nes2000": "4170d5780771b54b763315b5c21772befd4ca208c62d23424535f4b4af347439",
        "sblrc": "81990278b8762ac79244afcd470861560c7b28e34e411ce6da814e6f632a1b81",
    },
    "data_info": {
        "arK": "292adf486d5e163eadf927962fb981082a37b1d96336af0293719f1e0028948e",
        "earnings": "03a7dd7e06d1dc57fb6260e1cc295989ac34fc0abb6d5660533a2cf235a1aa82",
        "eight_schools": "57fdc54af949cea0c4ccb73fb33210187c272d8918630ccabbb51961a9f56a3f",
        "kidiq": "15bdb8c4494d71dd6f65ab5d9229842c96af466bd24a13207240ee0ac97b0843",
        "kilpisjarvi_mod": "c943a60f7955966a06e0b29a3e0703b571e63935af896b3f247618431e77c429",
        "low_dim_gauss_mix": "cb1c733feaa3aa9f040096c2f03305984073707a6b62752ceefec97cdb08aee7",
        "nes2000": "80cb5699d2edb91fbd8577c10c0ce4728192541fc2aeec016f81f6fc3470a5ab",
        "sblrc": "e466ad418e9db17efbcaab27260eb5bc03fff6dde2a54e01e9594d93b675e4a6",
    },
    "draws": {
        "arK-arK": "7ddb947e6c1ac5380f9c1e1fa101833a1236ef03de30f2cf5ece7b5b71841530",
        "earnings-logearn_interaction": "c34de19c290f25513686448cc1b0caff8248c97a1e47b5646d2af1d1f254707b",
        "eight_schools-eight_schools_noncentered": "0858641e630c877103dba2b78beaf6bc1f39435fc43d2894c4dff5d609c7a264",
        "kidiq-kidscore_interaction": "acac3c394dfeb65ced6f14ddf20b5a5c075d7a80ae663d1d71f904c16d207065",
        "kidiq-kidscore_momhsiq": "ba684f6687803c0aac94df2e352e8a7d18c458bc635088be64ccc0e8fb16dfe4",
        "kidiq-kidscore_momiq": "ee5deb23bf2dad804393c682b308da720825f9b099c37d774526c3a5a590e8d7",
        "kilpisjarvi_mod-kilpisjarvi": "a5bc7f19720bfaa073bc6ab16c837aa1ff921014bad09ea715494ed4723b9fad",
        "low_dim_gauss_mix-low_dim_gauss_mix": "422de750b20aef29c7b86f6bfa88dd9759050b6ffeb3588c004d6a4861c1e776",
        "nes2000-nes": "1b62971bd0ee49024afd2e77a3e0e2a10729a6b0ecf5d801f51233481b48cd74",
        "sblrc-blr": "44f876cf35a038fcd1fd13fb19bbadf04b4308618ad41390050ae8b014a4592d",
    },
    "draws_info": {
        "arK-arK": "4b5d48d7b01e901f033199cf22a36c5107428ecde74babeb5603b217319a2484",
        "earnings-logearn_interaction": "e93aa243c7a0cb984d7f0eb4ac107ed63ec46da8c8134bc32911ec02aa4f02cc",
        "eight_schools-eight_schools_noncentered": "2644206c0126c99a59d611be8a43a3ddde7a4d1b6b5d2d18a4e44feba3e46743",
        "kidiq-kidscore_interaction": "1d04e0eedc4501192db471a902d954cd2b872246a61d939aa6deae6d80b19f6d",
        "kidiq-kidscore_momhsiq": "82b15fd683404747b04cd8f9bf62b3c51e6a048a953c254a057e2c4e0fbbbe2d",
        "kidiq-kidscore_momiq": "b916ae6f232162dc178f5cb2a4e35f9bfe7a91a7afd933160db029142bd81370",
        "kilpisjarvi_mod-kilpisjarvi": "c946945016e90c614ce7b0bb57b45736b3094ce5941db9272cad55071f32d23c",
        "low_dim_gauss_mix-low_dim_gauss_mix": "8d2122bf29e7dc91e73066ce9385c24b8c1626cf7c3cbe7ecbf2d446bc73c0ed",
        "nes2000-nes": "ec7c746919254945c663453734d194ea006c7da6541f1c9a13734436301f94b9",
        "sblrc-blr": "9f2fd884ab4e029e95bf366e480805283f41b079e71a1e3107d5f61674905909",
    },
}
